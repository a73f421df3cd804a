// Runs tfjob-operator: serves probes and metrics, connects to the cluster, waits for the lease if
// leader election is on, runs the control loop, and shuts everything down.
#pragma once

#include <functional>

#include "operator/service/cluster.h"
#include "runtime/base/stop.h"

namespace tfjob::service {

// Contains the functions that the operator calls, each of which may be empty, and its clock.
struct OperatorHooks {
  // Called after the server that `flag` configures has started to listen.
  std::function<void(const std::string& flag, uint16_t port)> listening;
  // Called once, with the exit code, when shutdown begins. The process may exit shortly after the
  // call, even if parts of the operator are still running. Called on a separate thread, so the
  // operator's own work does not delay the call.
  std::function<void(int code)> leaving;
  // The clock that measures how long the operator has waited for the server.
  Clock* clock = &RealClock();
};

// Runs the operator and returns the exit code: kSucceeded if `stop` was requested, kFailed if the
// lease is lost or the operator cannot continue, kBadInput if the cluster configuration is wrong.
// Errors are logged. After a stop request, unfinished calls are cancelled after 1 s, and those for
// the lease, which is released last, after 1.5 s. If the lease is lost, all calls are cancelled
// immediately.
int RunOperator(const OperatorOptions& options, const ConnectOperator& connect, StopSource& stop,
                const OperatorHooks& hooks);

}  // namespace tfjob::service
