// tfjob scale: other numbers of replicas for one job.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

struct ScaleOptions {
  std::string name;
  std::map<api::ReplicaType, int32_t> replicas;
};

// Reads "worker=3" and, for workers, "3". InvalidArgument for other words, negative numbers, and a
// type that stands twice.
StatusOr<std::map<api::ReplicaType, int32_t>> ParseScale(const std::vector<std::string>& texts);

// kBadInput when the job would be invalid, kFailed when it has ended, has no such type, or the
// server refuses.
int Scale(const ScaleOptions& options, const Surroundings& around);

}  // namespace tfjob::cli
