// tfjob-operator, wired: probes and metrics, the connection, the lease, the control loop; and its end.
#pragma once

#include <functional>

#include "operator/service/cluster.h"
#include "runtime/base/stop.h"

namespace tfjob::service {

// Members may be empty.
struct OperatorHooks {
  // A server listens, for this flag.
  std::function<void(const std::string& flag, uint16_t port)> listening;
  // The end has begun and will have this code: what does not end by itself within moments may be cut off. Called once, by
  // another thread, whatever the operator is at.
  std::function<void(int code)> leaving;
  // Measures how patient it is with the server.
  Clock* clock = &RealClock();
};

// Runs until `stop` asks for the end (kSucceeded), the lease is lost or it cannot go on (kFailed); kBadInput: the
// configuration of the cluster is wrong. Logs everything. From the request on it takes as long as calls take, but cuts
// them off after 1 s, and those for the lease, which is given up last, after 1.5 s.
int RunOperator(const OperatorOptions& options, const ConnectOperator& connect, StopSource& stop,
                const OperatorHooks& hooks);

}  // namespace tfjob::service
