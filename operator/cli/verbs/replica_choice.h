// Selects the replicas of a verb: --replica worker/1, --replica ps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::cli {

class ReplicaChoice {
 public:
  // Parses "worker/1", "worker-1" or "worker", in any letter case. An empty list selects all
  // replicas. InvalidArgument for other words.
  static StatusOr<ReplicaChoice> Parse(const std::vector<std::string>& texts);

  bool all() const { return parts_.empty(); }
  bool Contains(const policy::Slot& slot) const;
  // Returns FailedPrecondition for a type or an index that the job does not have.
  Status CheckAgainst(const api::TFJob& job) const;

 private:
  struct Part {
    api::ReplicaType type = api::ReplicaType::kWorker;
    std::optional<int32_t> index;
  };

  std::vector<Part> parts_;
};

}  // namespace tfjob::cli
