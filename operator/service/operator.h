// Contains the parts of the running operator, and starts and stops them in order. Private to this
// package.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "operator/control/manager.h"
#include "operator/control/nodes.h"
#include "operator/events/recorder.h"
#include "operator/keys/key_folder.h"
#include "operator/kube/leader/leader_gate.h"
#include "operator/kube/leader/lease.h"
#include "operator/metrics/metrics.h"
#include "operator/serve/checks.h"
#include "operator/serve/server.h"
#include "operator/service/run.h"
#include "operator/service/stale_watches.h"

namespace tfjob::service {

// How often a standby checks whether it has become the leader, and how often a starting operator
// checks whether the first lists have arrived.
inline constexpr Duration kPoll = 50ms;

// Runs the operator once. Call Stop() after a stop has been requested through `stop`.
class Operator {
 public:
  Operator(const OperatorOptions& options, StopSource& stop, const OperatorHooks& hooks);

  Status Serve();
  Status Connect(const ConnectOperator& connect);
  // Waits for leadership, then runs the control loop until a stop is requested.
  Status Run();
  void Stop();

 private:
  // Waits for the stop request, and then cancels calls that delay the shutdown. Runs on the thread
  // departure_.
  void Depart();
  Status StartElection();
  Status StartLoop();
  control::ManagerOptions LoopOptions();
  Status AwaitLists();
  // Checks the watches until a stop is requested. Returns an error if this operator should give up
  // the lease because a watch has not worked for too long.
  Status CheckWatches();
  // Returns the broken watches among those that the control loop needs.
  std::vector<kube::WatchTrouble> Troubles();
  // Returns a function that queries whether the server serves a kind.
  CheckServed ServedCheck();
  bool leads() const { return election_ != nullptr; }
  std::vector<serve::Check> HealthChecks();
  std::vector<serve::Check> ReadyChecks();
  Status CheckReady();
  // Returns whether a write may still be sent. Called just before the write is sent, because the
  // write may have waited for flow control after the LeaderGate let it pass.
  bool MayWrite() const;

  const OperatorOptions& options_;
  StopSource& stop_;
  const OperatorHooks& hooks_;
  metrics::Metrics metrics_;
  keys::KeyFolder keys_;
  std::vector<std::unique_ptr<serve::Server>> servers_;
  std::unique_ptr<OperatorCluster> cluster_;
  std::unique_ptr<kube::LeaderElection> election_;
  std::unique_ptr<kube::LeaderGate> gate_;
  std::unique_ptr<kube::LeaderGate> event_gate_;
  std::unique_ptr<events::Recorder> recorder_;
  std::unique_ptr<control::Nodes> nodes_;
  std::unique_ptr<control::Manager> manager_;
  // Pointers to the current parts, for the servers' threads.
  std::atomic<kube::LeaderElection*> seen_election_ = nullptr;
  std::atomic<control::Manager*> seen_manager_ = nullptr;
  std::atomic<OperatorCluster*> seen_cluster_ = nullptr;  // also read by departure_
  StopSource ended_;  // set once everything but departure_ has ended
  std::thread departure_;
};

}  // namespace tfjob::service
