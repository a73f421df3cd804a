// Makes the strategy that keeps variables on parameter servers. Each training task computes
// gradients on its batches, sends each gradient as soon as the backward pass has produced it, and
// receives fresh values: asynchronously (gradients are applied as they arrive) or synchronously
// (gradients are averaged).
#pragma once

#include "runtime/config/training_config.h"
#include "runtime/ps/definition.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/identity.h"
#include "runtime/state/peer.h"
#include "runtime/strategy/strategy.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::rpc {
class Connector;
}  // namespace tfjob::rpc

namespace tfjob::strategy {

// Returns what the servers hold and how they update it. `training_tasks` is the number of tasks
// that compute gradients; 0 means that it is unknown.
ps::Definition DefineParameters(const config::StrategyConfig& config,
                                const state::TrainingState& state, int training_tasks);

struct ParameterServerOptions {
  StrategyOptions common;
  ps::Definition parameters;         // its state is that of common.definition
  std::vector<std::string> servers;  // "host:port" by index
  rpc::Identity identity;            // identity of this task
  bool chief = false;
  state::PeerEventSink on_event;
  // Called several times per second during every wait. If it returns true, the wait
  // ends with Cancelled.
  std::function<bool()> stop_requested;
  Duration patience{0};                 // 0: wait indefinitely, with reports
  rpc::Connector* connector = nullptr;  // null: gRPC
  rpc::Credentials credentials;
};

StatusOr<std::unique_ptr<Strategy>> MakeParameterServer(ParameterServerOptions options);

}  // namespace tfjob::strategy
