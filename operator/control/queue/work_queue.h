// Queues keys that need work. A key that is added several times before a worker takes it is
// processed once. Several workers take keys, but a key is never processed by two workers at the
// same time. A key that is added while it is being processed is processed again afterwards.
// FairQueue determines the order of the keys.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "operator/control/measurements/numbers.h"
#include "operator/control/measurements/observer.h"
#include "operator/control/queue/fair_queue.h"
#include "runtime/base/backoff.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Distributes keys to workers. Thread-safe. All times are monotonic times of the clock. Get()
// sleeps in real time, so it works only with a real clock.
class WorkQueue {
 public:
  // At most `most_per_namespace` keys of a namespace are processed at the same time. Therefore,
  // calls that hang in one namespace, for example in an admission webhook, do not hold up all
  // workers.
  explicit WorkQueue(Clock& clock, BackoffPolicy backoff = {}, Observer& observer = NoObserver(),
                     size_t most_per_namespace = std::numeric_limits<size_t>::max())
      : clock_(clock),
        backoff_(backoff),
        observer_(observer),
        most_per_namespace_(most_per_namespace) {}

  void Add(const std::string& key, Urgency urgency = Urgency::kNews);
  // Adds the key after `delay`. If the key is already delayed, the earlier time applies.
  void AddAfter(const std::string& key, Duration delay);
  // Call this after a failure. Adds the key after a backoff, which depends on how often the key has
  // failed so far.
  void AddBackedOff(const std::string& key);
  // Call this after a success. Resets the key's number of failures.
  void Forget(const std::string& key);

  // Return a key to process. The caller must call Done() afterwards. Get waits for a key, and
  // returns nullopt once the queue is shut down. TryGet returns nullopt if no key is ready.
  std::optional<std::string> Get();
  std::optional<std::string> TryGet();
  void Done(const std::string& key);
  // Records that the key's worker has completed a call, so the worker is not stuck.
  void RecordProgress(const std::string& key);

  // Wakes all waiting workers. After this, no key is returned or added.
  void ShutDown();

  // Returns the time until the next delayed key is due (0: now); nullopt if none is delayed.
  std::optional<Duration> NextTimer();

  QueueNumbers Count();

 private:
  // Describes a key that is in ready_, or that Done() will put there.
  struct Wanted {
    Duration since{0};
    Urgency urgency = Urgency::kNews;
  };

  // Describes a key that a worker has taken.
  struct Working {
    Duration since{0};
    Duration progress{0};  // when the key was taken or its last call was completed
  };

  void AddLocked(const std::string& key, Urgency urgency) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddDueLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<std::string> TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const BackoffPolicy backoff_;
  Observer& observer_;
  const size_t most_per_namespace_;
  Mutex mutex_;
  CondVar changed_;
  FairQueue ready_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Wanted> wanted_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Working> working_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, size_t> working_in_ ABSL_GUARDED_BY(mutex_);  // by namespace
  std::set<std::pair<Duration, std::string>> delayed_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Duration> due_ ABSL_GUARDED_BY(mutex_);  // when each key is due
  std::unordered_map<std::string, int> failures_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tfjob::control
