// The cluster that the operator works on, as the program needs it: an API server, or a stand-in of tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/client/client.h"
#include "operator/kube/client/watch_health.h"
#include "operator/kube/rest/rest_client.h"
#include "operator/service/options.h"

namespace tfjob::service {

class OperatorCluster {
 public:
  virtual ~OperatorCluster() = default;

  // "https://10.0.0.1:443 (in-cluster)", for logs.
  virtual std::string name() const = 0;
  // Where the Lease lies unless it is said.
  virtual std::string own_namespace() const = 0;
  virtual client::Client& client() = 0;
  // For Events: with connections and flow control of its own, so that no write of client() waits for them.
  virtual client::Client& event_client() = 0;
  // With connections and flow control of its own, and a short deadline.
  virtual client::Client& lease_client() = 0;
  virtual client::Discovery& discovery() = 0;
  // The subscriptions of client() that do not work.
  virtual std::vector<kube::WatchTrouble> Troubles() = 0;
  // Ends every call of client(), event_client() and discovery() that is under way or comes later with Cancelled.
  virtual void CancelCalls() = 0;
  // The same of lease_client().
  virtual void CancelLeaseCalls() = 0;
};

// Connects nothing yet: the server may be away. InvalidArgument, NotFound: the configuration is wrong or absent.
// `observer` outlives the cluster and is told of every call. `may_write` is asked before each write of client() and
// event_client() leaves, never for those of lease_client().
using ConnectOperator = std::function<StatusOr<std::unique_ptr<OperatorCluster>>(
    const OperatorOptions& options, kube::RestObserver& observer,
    const std::function<bool()>& may_write)>;

}  // namespace tfjob::service
