// Creates the strategy that keeps variables on parameter servers. Each training task computes
// gradients on its batches, sends each gradient as soon as the backward pass has computed it, and
// receives new values. In asynchronous mode, the servers apply gradients as they arrive. In
// synchronous mode, the servers average the gradients of a step.
#pragma once

#include <optional>

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

// Returns the definition of the variables on the servers and of the updates to these variables.
// `training_tasks` is the number of tasks that compute gradients, or 0 if it is unknown.
ps::Definition DefineParameters(const config::StrategyConfig& config,
                                const state::TrainingState& state, int training_tasks);

struct ParameterServerOptions {
  StrategyOptions common;
  ps::Definition parameters;         // parameters.state equals common.definition.state
  std::vector<std::string> servers;  // "host:port" by index
  rpc::Identity identity;            // of this task
  bool chief = false;
  // Tables (SeparableTables) with more bytes than this stay on the servers, and tasks read only the
  // rows that a batch needs. If 0, every task has a copy of every table.
  int64_t table_bytes = 0;
  std::optional<int64_t> max_staleness;  // see ps::ClientOptions
  state::PeerEventSink on_event;
  // Called several times per second during each wait. If it returns true, the wait fails with
  // Cancelled.
  std::function<bool()> stop_requested;
  Duration stop_patience{5s};           // see ps::ClientOptions
  std::function<void()> on_late_step;   // see ps::ClientOptions
  Duration patience{0};                 // the longest wait for other tasks; 0 for no limit
  rpc::Connector* connector = nullptr;  // null for TCP sockets
  rpc::Credentials credentials;
};

StatusOr<std::unique_ptr<Strategy>> MakeParameterServer(ParameterServerOptions options);

}  // namespace tfjob::strategy
