// Wires up tfjob-operator: probes and metrics, the connection, the lease, the control loop, and
// the shutdown.
#pragma once

#include <functional>

#include "operator/service/cluster.h"
#include "runtime/base/stop.h"

namespace tfjob::service {

// Members may be empty.
struct OperatorHooks {
  // Called when the server for this flag listens.
  std::function<void(const std::string& flag, uint16_t port)> listening;
  // Called when shutdown begins, with the exit code. Whatever does not end by itself within moments
  // may be cut off. Called once, on another thread, regardless of what the operator is doing.
  std::function<void(int code)> leaving;
  // Measures how long the operator waits for the server.
  Clock* clock = &RealClock();
};

// Runs the operator and returns the exit code: kSucceeded if `stop` was requested, kFailed if the
// lease is lost or the operator cannot continue, kBadInput if the cluster configuration is wrong.
// Logs everything. After a stop request it waits for calls to finish, but cancels them after 1 s,
// and calls for the lease, which is released last, after 1.5 s.
int RunOperator(const OperatorOptions& options, const ConnectOperator& connect, StopSource& stop,
                const OperatorHooks& hooks);

}  // namespace tfjob::service
