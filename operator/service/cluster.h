// Defines the operator's interface to its cluster: an API server, or a fake in tests.
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

  // Returns a name for logs, such as "https://10.0.0.1:443 (in-cluster)".
  virtual std::string name() const = 0;
  // Returns the default namespace of the Lease.
  virtual std::string own_namespace() const = 0;
  virtual client::Client& client() = 0;
  // Returns the client that writes Events. It has its own connections and flow control, so writes
  // through client() never wait for Events.
  virtual client::Client& event_client() = 0;
  // Returns the client for the Lease. It has its own connections and flow control, and a short
  // deadline.
  virtual client::Client& lease_client() = 0;
  virtual client::Discovery& discovery() = 0;
  // Returns the watches of client() that are currently not working.
  virtual std::vector<kube::WatchTrouble> Troubles() = 0;
  // Makes all current and future calls of client(), event_client() and discovery() fail with
  // Cancelled.
  virtual void CancelCalls() = 0;
  // Makes all current and future calls of lease_client() fail with Cancelled.
  virtual void CancelLeaseCalls() = 0;
};

// Creates the cluster without connecting, because the server may be unavailable. Returns
// InvalidArgument or NotFound if the configuration is wrong or missing. `observer` is notified of
// every call and must outlive the cluster. `may_write` is called just before client() or
// event_client() sends a write; if it returns false, the write is not sent. It is not called for
// lease_client().
using ConnectOperator = std::function<StatusOr<std::unique_ptr<OperatorCluster>>(
    const OperatorOptions& options, kube::RestObserver& observer,
    const std::function<bool()>& may_write)>;

}  // namespace tfjob::service
