// The stages of the runtime as text: tfjob-trainer --print=….
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/ps/definition.h"

namespace tfjob::cmd {

// One task a line: its role, its address, and an arrow before the own one.
std::string PrintCluster(const cluster::TfConfig& config);

// Which bytes of which variable lie on which server, and what each server holds, optimizer slots included.
std::string PrintPlacement(const ps::Definition& definition, int servers);

// "config", "model", "graph", "placement" or "program": the training task's, at the full batch size. Reads the data, since
// the shapes come from it. InvalidArgument for "placement" without parameter servers.
StatusOr<std::string> PrintStage(const std::string& stage, const config::TrainingConfig& config,
                                 const cluster::TfConfig& tf_config);

}  // namespace tfjob::cmd
