// Runs the control loop (watches → caches → work queue → reconcile), either on threads or step
// by step.
//
// Threads: `workers` threads take keys from the queue and reconcile. Another `parallel_writes`
// threads execute the writes of a plan in parallel. Watch events arrive on the client's threads. If
// `workers` is 0, no worker threads run: tests with a FakeClock call Step() instead.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/client/client.h"
#include "operator/control/measurements/numbers.h"
#include "operator/control/measurements/observer.h"
#include "operator/control/settings.h"
#include "operator/objects/kind.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob {
class ThreadPool;
}

namespace tfjob::control {

class Cache;
class NativeApi;
class Reconciler;
class WorkQueue;

struct ManagerOptions {
  std::vector<std::string> name_spaces;  // empty: all
  int workers = 4;
  int parallel_writes = 16;  // 0: a plan's writes are sent one by one
  Settings settings;
  // Reports which version of Kubernetes' own gang scheduling (Workloads and PodGroups) the server
  // has. If nullptr, the server is assumed to have none. Must outlive the manager.
  client::Discovery* discovery = nullptr;
  Clock* clock = &RealClock();
  Observer* observer = &NoObserver();
};

class Manager {
 public:
  // Subscribes to the watches and starts the workers. `client` must outlive the manager. The jobs
  // of a namespace are reconciled once its first lists have arrived.
  static StatusOr<std::unique_ptr<Manager>> Start(client::Client& client, ManagerOptions options);
  // Calls Stop().
  ~Manager();

  // Waits until the workers have finished their current reconciles, joins the threads and ends the
  // subscriptions. A reconcile that creates many objects stops after the calls in progress.
  // Idempotent.
  void Stop();

  // Synced() returns true once all required lists have arrived for the first time. Waiting()
  // returns those that have not arrived yet: "TFJob", "Pod in namespace a".
  bool Synced();
  std::vector<std::string> Waiting();

  Numbers Count();
  // Returns only the statistics of the queue, which are cheap to get even if the cache is large.
  QueueNumbers CountQueue();

  // Reconciles one job that is due; returns false if no job is due. Used only if `workers` is 0.
  bool Step();
  // Returns the time until the next delayed job is due (0: now); nullopt if no job is delayed.
  std::optional<Duration> NextTimer();

 private:
  // Describes the watch of a scheduler's pod groups (and workloads), or of the network policies:
  // when the watch started and, for Kubernetes' own scheduler, its API version.
  struct GroupWatch {
    Duration since{0};
    std::string version;
    bool required = false;
    std::vector<std::unique_ptr<client::Subscription>> subscriptions;
  };

  Manager(client::Client& client, ManagerOptions options);

  Status Subscribe(const std::string& name_space);
  // Subscribes to the scheduler's pod groups, unless a subscription to the same version exists.
  // Returns false until the first list has arrived or the time to wait for it has run out.
  bool WatchPodGroups(policy::GangScheduler scheduler, bool required);
  // Subscribes to network policies, if the settings allow jobs to have them.
  void WatchNetworkPolicies();
  // Returns whether the first lists of network policies have arrived or the time to wait for them
  // has run out.
  bool SeesNetworkPolicies();
  void SubscribeToGroups(objects::Kind kind, const client::LabelSelector& selector,
                         GroupWatch& watch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work();
  void ReconcileOne(const std::string& key);

  const ManagerOptions options_;
  client::Client& client_;
  const std::unique_ptr<WorkQueue> queue_;
  const std::unique_ptr<Cache> cache_;
  const std::unique_ptr<ThreadPool> pool_;
  const std::unique_ptr<NativeApi> native_api_;
  const std::unique_ptr<Reconciler> reconciler_;
  Mutex mutex_;
  std::vector<std::unique_ptr<client::Subscription>> subscriptions_ ABSL_GUARDED_BY(mutex_);
  std::map<policy::GangScheduler, GroupWatch> pod_groups_ ABSL_GUARDED_BY(mutex_);
  GroupWatch network_policies_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> workers_;
};

}  // namespace tfjob::control
