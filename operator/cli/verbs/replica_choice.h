// Selects replicas for a verb: --replica worker/1, --replica ps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::cli {

class ReplicaChoice {
 public:
  // Parses texts such as "worker/1", "worker-1" or "worker", in any letter case; returns
  // InvalidArgument for any other text. An empty list selects all replicas.
  static StatusOr<ReplicaChoice> Parse(const std::vector<std::string>& texts);

  bool all() const { return parts_.empty(); }
  bool Contains(const policy::Slot& slot) const;
  // Returns FailedPrecondition if the job lacks a chosen type or index.
  Status CheckAgainst(const api::TFJob& job) const;

 private:
  struct Part {
    api::ReplicaType type = api::ReplicaType::kWorker;
    std::optional<int32_t> index;
  };

  std::vector<Part> parts_;
};

}  // namespace tfjob::cli
