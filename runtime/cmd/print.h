// The stages of the runtime as text: tfjob-trainer --print=….
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"

namespace tfjob::cmd {

// One task a line: its role, its address, and an arrow before the own one.
std::string PrintCluster(const cluster::TfConfig& config);

// "config", "model", "graph" or "program": the training task's, at the full batch size. Reads the data, since the shapes
// come from it.
StatusOr<std::string> PrintStage(const std::string& stage, const config::TrainingConfig& config,
                                 const cluster::TfConfig& tf_config);

}  // namespace tfjob::cmd
