// tfjob-operator, wired: probes and metrics, the connection, the lease, the control loop; and its end.
#pragma once

#include <functional>

#include "operator/cmd/operator_cluster.h"
#include "runtime/base/stop.h"

namespace tfjob::cmd {

// Members may be empty.
struct OperatorHooks {
  // A server listens, for this flag.
  std::function<void(const std::string& flag, uint16_t port)> listening;
  // The end has begun and will have this code: what does not end by itself within moments may be cut off.
  std::function<void(int code)> leaving;
};

// Runs until `stop` asks for the end (kSucceeded) or the lease is lost (kFailed); kBadInput: the configuration of the
// cluster is wrong. Logs everything.
int RunOperator(const OperatorOptions& options, const ConnectOperator& connect, StopSource& stop,
                const OperatorHooks& hooks);

}  // namespace tfjob::cmd
