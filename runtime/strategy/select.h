// Chooses the strategy with which a task trains, and makes it. The only place that knows every
// strategy: a new one adds its row to the table in select.cc.
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
// cluster. Returns InvalidArgument or Unimplemented, saying what to change, if the cluster or this
// task cannot use it. Never returns kAuto.
StatusOr<config::StrategyKind> Select(config::StrategyKind wanted,
                                      const cluster::TfConfig& tf_config);

// What a strategy may need to know of the task that trains with it.
struct TrainingTask {
  config::StrategyConfig config;
  cluster::TfConfig tf_config;
  rpc::Identity identity;
  state::PeerEventSink on_event;
  // Polled several times per second by every wait; returning true ends the wait with Cancelled.
  std::function<bool()> stop_requested;
};

// Makes the selected strategy. Does not wait for any other task.
StatusOr<std::unique_ptr<Strategy>> MakeStrategy(TrainingTask task, StrategyOptions options);

}  // namespace tfjob::strategy
