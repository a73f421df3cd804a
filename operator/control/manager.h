// Runs the control loop: watches → caches → work queue → reconcile, on threads or step by step.
//
// Threads: `workers` threads take keys and reconcile; `parallel_writes` more carry out the writes
// of one plan in parallel; watch events arrive on the client's threads. With workers 0 nothing runs
// by itself: call Step(), for tests with a FakeClock.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/client/client.h"
#include "operator/control/cache.h"
#include "operator/control/reconcile.h"
#include "operator/control/work_queue.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {

struct Options {
  std::vector<std::string> name_spaces;  // empty: all
  int workers = 4;
  int parallel_writes = 16;  // 0: a plan's writes are sent one by one
  Settings settings;
  // Reports whether the server has gangs of its own; nullptr: it has none. Must
  // outlive the manager.
  client::Discovery* discovery = nullptr;
  Clock* clock = &RealClock();
  Observer* observer = &NoObserver();
};

class Manager {
 public:
  // Subscribes and starts the workers. `client` must outlive the manager. Work on a namespace's
  // jobs begins once its first lists have arrived.
  static StatusOr<std::unique_ptr<Manager>> Start(client::Client& client, Options options);
  // Calls Stop().
  ~Manager();

  // Lets the workers finish the jobs in progress (for a large job, the calls that are under way),
  // ends the subscriptions and joins all threads. Idempotent.
  void Stop();

  // True once the first lists have arrived.
  // Waiting() returns those that are missing: "TFJob", "Pod in namespace a".
  bool Synced() { return cache_.Synced(); }
  std::vector<std::string> Waiting() { return cache_.Waiting(); }

  // For gauges.
  struct Numbers {
    Cache::Numbers cache;
    WorkQueue::Numbers queue;
  };
  Numbers Count() { return {cache_.Count(), queue_.Count()}; }
  // The part that costs nothing, whatever the caches hold.
  WorkQueue::Numbers CountQueue() { return queue_.Count(); }

  // With workers 0: reconciles one job that is due; returns false if none is.
  bool Step();
  // Returns the time until a job is due by itself (0: now); nullopt if none waits for a time.
  std::optional<Duration> NextTimer() { return queue_.NextTimer(); }

 private:
  // Watched pod groups (and workloads): since when and, for Kubernetes' own, under which version.
  struct GroupWatch {
    Duration since{0};
    std::string version;
    bool required = false;
    std::vector<std::unique_ptr<client::Subscription>> subscriptions;
  };

  Manager(client::Client& client, Options options);

  Status Subscribe(const std::string& name_space);
  // Subscribes if not yet subscribed, or subscribed to another version; returns false while the
  // first list may still arrive.
  bool WatchPodGroups(policy::GangScheduler scheduler, bool required);
  void SubscribeToGroups(objects::Kind kind, GroupWatch& watch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work();
  void ReconcileOne(const std::string& key);

  const Options options_;
  client::Client& client_;
  WorkQueue queue_;
  Cache cache_;
  ThreadPool pool_;
  NativeApi native_api_;
  Reconciler reconciler_;
  Mutex mutex_;
  std::vector<std::unique_ptr<client::Subscription>> subscriptions_ ABSL_GUARDED_BY(mutex_);
  std::map<policy::GangScheduler, GroupWatch> pod_groups_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> workers_;
};

}  // namespace tfjob::control
