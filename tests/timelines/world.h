// Provides the cluster of a timeline: the in-memory store, a fake clock, and the control loop,
// which is stepped manually. Also simulates faults, and the actions of users, kubelets and nodes.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/client/faults.h"
#include "operator/control/manager.h"
#include "operator/keys/key_ring.h"
#include "operator/local/store/store.h"
#include "runtime/base/clock.h"
#include "runtime/base/fake_clock.h"

namespace tfjob::timelines {

inline constexpr char kNamespace[] = "ns";
inline constexpr char kJob[] = "job";
inline constexpr char kNode[] = "node-1";

class World {
 public:
  World();

  client::Client& server() { return store_; }                  // as seen by all other clients
  client::FaultyClient& operator_client() { return faulty_; }  // as seen by the operator
  FakeClock& clock() { return clock_; }

  Status StartOperator();
  // Sets --gang-scheduler-name for the next start of the operator.
  void SetGangScheduler(const std::string& name) { gang_ = policy::GangFromFlag(name); }
  // Replaces the operator's keys, even while it runs.
  void SetKeys(keys::KeyRing ring) {
    keys_ = std::make_shared<const keys::KeyRing>(std::move(ring));
  }
  const keys::KeyRing& keys() const { return *keys_; }
  // Sets --job-network-policies for the next start of the operator.
  void SetNetworkPolicies(policy::NetworkPolicies setting) { network_policies_ = setting; }
  // Sets the version of Kubernetes' own gang scheduling that the server serves, or "" for none.
  void SetNativeVersion(std::string version) { discovery_.version = std::move(version); }
  // Kills the operator at its `call`th call from now, before the server executes the call or, if
  // `carried_out` is true, afterwards. All later calls fail until the next StartOperator.
  void KillOperatorAt(int call, bool carried_out);
  // Delivers events and reconciles the job until nothing is left to do. Returns FailedPrecondition
  // if the loop never becomes idle.
  Status RunUntilIdle();
  // Advances the clock, and runs everything that becomes due in the meantime.
  Status Advance(Duration by);
  void SetNodeLost(const std::string& node, bool lost);

  // Writes the status of a pod as a kubelet does. `change` edits the status.
  Status Report(const std::string& pod, const std::function<void(objects::Pod&)>& change);
  Status Delete(objects::Kind kind, const std::string& name,
                std::optional<int64_t> grace = std::nullopt);

  static client::Key KeyOf(objects::Kind kind, const std::string& name) {
    return {kind, kNamespace, name};
  }

 private:
  struct FixedVersion : client::Discovery {
    StatusOr<std::string> ApiVersion(objects::Kind kind) override;
    std::string version{client::NewestApiVersion(objects::Kind::kWorkload)};
  };

  FakeClock clock_;
  FixedVersion discovery_;
  store::Store store_;
  client::FaultyClient faulty_;
  std::set<std::string> lost_nodes_;
  policy::Gang gang_;
  std::shared_ptr<const keys::KeyRing> keys_ = std::make_shared<const keys::KeyRing>();
  policy::NetworkPolicies network_policies_ = policy::NetworkPolicies::kNone;
  std::unique_ptr<control::Manager> manager_;
};

}  // namespace tfjob::timelines
