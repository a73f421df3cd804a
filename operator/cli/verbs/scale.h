// tfjob scale: changes the replica counts of one job.
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

// Parses texts such as "ps=2". A number alone, such as "3", is the number of workers. Returns
// InvalidArgument for any other text, for negative numbers and for repeated types.
StatusOr<std::map<api::ReplicaType, int32_t>> ParseScale(const std::vector<std::string>& texts);

// Scales the job. Returns kBadInput if the job would become invalid, and kFailed if it does not
// exist, has ended or lacks one of the types, or if the server rejects the change.
int Scale(const ScaleOptions& options, const VerbContext& context);

}  // namespace tfjob::cli
