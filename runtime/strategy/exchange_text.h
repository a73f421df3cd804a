// Describes the exchange between the ranks of a job in a step, for tfjob-trainer
// --print=collectives.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/strategy/model/model_definition.h"

namespace tfjob::strategy {

// Describes the strategy, the ranks, the transport, the buckets and the exchanges of the program
// (in the order in which they are reduced) and the tables whose gradients travel by rows. For tasks
// that exchange over sockets, also shows this task's plan for each bucket: algorithm, predicted
// time, fingerprint and the bytes on each link. If the strategy exchanges no gradients between
// ranks, the text says so. Propagates errors from Select and PlanStep.
//
// `on_gpus` means that the tasks compute on GPUs. `machines` says which tasks share a machine
// (collectives::ParseHosts); "" leaves this open. Returns InvalidArgument if it does not fit the
// tasks, the strategy or strategy.transport.
StatusOr<std::string> DescribeExchange(const ModelDefinition& definition,
                                       const config::StrategyConfig& config,
                                       const cluster::TfConfig& tf_config,
                                       const std::string& machines = "", bool on_gpus = false);

}  // namespace tfjob::strategy
