// Chooses the strategy with which a task trains, and makes it. No other file knows every strategy;
// a new one adds its row to the table in select.cc.
#pragma once

#include <functional>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/rpc/identity.h"
#include "runtime/state/peer.h"
#include "runtime/strategy/strategy.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

// Returns the strategy that the training file names or, for `auto`, the first one that suits the
// cluster. Returns InvalidArgument or Unimplemented, with a message that says what to change, if
// this task or the cluster cannot use it. Never returns kAuto.
StatusOr<config::StrategyKind> Select(config::StrategyKind wanted,
                                      const cluster::TfConfig& tf_config);

// The facts about a training task that a strategy may need.
struct TrainingTask {
  config::StrategyConfig config;
  cluster::TfConfig tf_config;
  rpc::Identity identity;
  state::PeerEventSink on_event;
  // Called several times per second during every wait. If it returns true, the wait
  // ends with Cancelled.
  std::function<bool()> stop_requested;
};

// Makes the selected strategy. Does not wait for any other task.
StatusOr<std::unique_ptr<Strategy>> MakeStrategy(TrainingTask task, StrategyOptions options);

}  // namespace tfjob::strategy
