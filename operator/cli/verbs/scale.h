// tfjob scale: changes the numbers of replicas of one job.
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

// Parses "worker=3" and, for workers, "3". Returns InvalidArgument for any other text, negative
// numbers and repeated types.
StatusOr<std::map<api::ReplicaType, int32_t>> ParseScale(const std::vector<std::string>& texts);

// Scales the job. Returns kBadInput if the job would become invalid, kFailed if it has ended, lacks
// one of the types, or the server refuses.
int Scale(const ScaleOptions& options, const VerbContext& context);

}  // namespace tfjob::cli
