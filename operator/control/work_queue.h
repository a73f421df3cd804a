// Queues keys that need work. A key is a request, not a message: however often it is added, it is
// worked on once. Several workers take keys, but never the same key; a key that is added while
// being worked on is worked on again afterwards.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "operator/control/numbers.h"
#include "operator/control/observer.h"
#include "runtime/base/backoff.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Thread-safe. Times are the clock's monotonic ones; Get() sleeps in real time, so it works only
// with a real clock.
class WorkQueue {
 public:
  explicit WorkQueue(Clock& clock, BackoffPolicy backoff = {}, Observer& observer = NoObserver())
      : clock_(clock), backoff_(backoff), observer_(observer) {}

  void Add(const std::string& key);
  // Adds the key after `delay`; if it is already waiting, the earlier time holds.
  void AddAfter(const std::string& key, Duration delay);
  // After a failure: adds the key after the backoff of its failures so far (5 ms, 10 ms, …).
  void AddBackedOff(const std::string& key);
  // After a success: forgets the failures of the key.
  void Forget(const std::string& key);

  // Return a key to work on; Done(key) must follow. Get waits for one, and returns nullopt once the
  // queue is shut down.
  std::optional<std::string> Get();
  std::optional<std::string> TryGet();
  void Done(const std::string& key);

  // Wakes all waiting workers; no key is handed out or added any more.
  void ShutDown();

  // Returns the time until the next delayed key is due (0: now); nullopt if none is delayed.
  std::optional<Duration> NextTimer();

  QueueNumbers Count();

 private:
  void AddLocked(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddDueLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<std::string> TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const BackoffPolicy backoff_;
  Observer& observer_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);
  // Keys in ready_, or to be put there once done: since when.
  std::unordered_map<std::string, Duration> wanted_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Duration> working_ ABSL_GUARDED_BY(mutex_);  // since when
  std::set<std::pair<Duration, std::string>> delayed_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Duration> due_ ABSL_GUARDED_BY(mutex_);  // of each in delayed_
  std::unordered_map<std::string, int> failures_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tfjob::control
