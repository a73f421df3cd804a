// Formats, for tfjob-trainer --print=STAGE, the values that each stage of the runtime derives from
// its input.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/ps/definition.h"

namespace tfjob::cmd {

// Returns one line per task with its role and address. An arrow marks this task.
std::string PrintCluster(const cluster::TfConfig& config);

// Describes the placement: the size and server of each shard, and the total size of each server's
// shards, including optimizer slots.
std::string PrintPlacement(const ps::Definition& definition, int servers);

// Returns the text of one stage ("config", "data", "model", "graph", "graph_def", "placement",
// "program" or "collectives") for the training task, at the full batch size. Reads the data, which
// determines the shapes. Returns InvalidArgument for "placement" if there are no parameter servers.
// `machines` says which tasks share a machine (strategy::DescribeExchange), and is only for
// "collectives".
StatusOr<std::string> PrintStage(const std::string& stage, const config::TrainingConfig& config,
                                 const cluster::TfConfig& tf_config,
                                 const std::string& machines = "");

}  // namespace tfjob::cmd
