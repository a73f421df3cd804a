#include "operator/control/queue/work_queue.h"

#include <algorithm>

namespace tfjob::control {

void WorkQueue::AddLocked(const std::string& key, Urgency urgency) {
  if (stopping_) return;
  const auto [wanted, is_new] = wanted_.try_emplace(key, Wanted{clock_.Monotonic(), urgency});
  if (is_new) observer_.OnQueueAdd();
  wanted->second.urgency = std::max(wanted->second.urgency, urgency);
  if (working_.count(key) > 0) return;  // Done() puts it back
  ready_.Push(key, urgency);
  if (is_new) changed_.NotifyOne();
}

void WorkQueue::Add(const std::string& key, Urgency urgency) {
  MutexLock lock(mutex_);
  AddLocked(key, urgency);
}

void WorkQueue::AddAfter(const std::string& key, Duration delay) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  if (delay <= Duration(0)) return AddLocked(key, Urgency::kNews);
  const Duration due = clock_.Monotonic() + delay;
  const auto [waiting, is_new] = due_.emplace(key, due);
  if (!is_new) {
    if (waiting->second <= due) return;
    delayed_.erase({waiting->second, key});
    waiting->second = due;
  }
  delayed_.emplace(due, key);
  // This key is now due before all other delayed keys, so a sleeping worker must shorten its sleep.
  if (delayed_.begin()->second == key) changed_.NotifyOne();
}

void WorkQueue::AddBackedOff(const std::string& key) {
  int failures;
  {
    MutexLock lock(mutex_);
    failures = ++failures_[key];
  }
  observer_.OnQueueRetry();
  AddAfter(key, BackoffDelay(backoff_, failures));
}

void WorkQueue::Forget(const std::string& key) {
  MutexLock lock(mutex_);
  failures_.erase(key);
}

void WorkQueue::AddDueLocked() {
  if (delayed_.empty()) return;
  const Duration now = clock_.Monotonic();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const std::string key = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    due_.erase(key);
    AddLocked(key, Urgency::kNews);
  }
}

std::optional<std::string> WorkQueue::TakeLocked() {
  AddDueLocked();
  if (stopping_) return std::nullopt;
  std::optional<std::string> key =
      ready_.Pop([this](const std::string& name_space) ABSL_NO_THREAD_SAFETY_ANALYSIS {
        const auto working = working_in_.find(name_space);
        return working == working_in_.end() || working->second < most_per_namespace_;
      });
  if (!key) return std::nullopt;
  ++working_in_[FairQueue::NamespaceOf(*key)];
  const Duration now = clock_.Monotonic();
  const auto wanted = wanted_.find(*key);
  observer_.OnQueueGet(now - wanted->second.since);
  wanted_.erase(wanted);
  working_.emplace(*key, Working{now, now});
  return key;
}

std::optional<std::string> WorkQueue::TryGet() {
  MutexLock lock(mutex_);
  return TakeLocked();
}

std::optional<std::string> WorkQueue::Get() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (std::optional<std::string> key = TakeLocked()) {
      // The worker that slept until this key was due is now busy, so wake another worker to wait
      // for the next delayed key.
      if (!delayed_.empty()) changed_.NotifyOne();
      return key;
    }
    if (delayed_.empty()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitFor(mutex_, delayed_.begin()->first - clock_.Monotonic());
    }
  }
  return std::nullopt;
}

void WorkQueue::Done(const std::string& key) {
  MutexLock lock(mutex_);
  if (const auto working = working_.find(key); working != working_.end()) {
    observer_.OnQueueDone(clock_.Monotonic() - working->second.since);
    working_.erase(working);
    const auto in = working_in_.find(FairQueue::NamespaceOf(key));
    if (--in->second == 0) working_in_.erase(in);
  }
  const auto wanted = wanted_.find(key);
  if (wanted == wanted_.end() || stopping_) return;
  ready_.Push(key, wanted->second.urgency);
  changed_.NotifyOne();
}

void WorkQueue::RecordProgress(const std::string& key) {
  MutexLock lock(mutex_);
  const auto working = working_.find(key);
  if (working != working_.end()) working->second.progress = clock_.Monotonic();
}

void WorkQueue::ShutDown() {
  MutexLock lock(mutex_);
  stopping_ = true;
  changed_.NotifyAll();
}

QueueNumbers WorkQueue::Count() {
  MutexLock lock(mutex_);
  QueueNumbers numbers;
  numbers.depth = static_cast<int64_t>(ready_.size());
  numbers.working = static_cast<int64_t>(working_.size());
  const Duration now = clock_.Monotonic();
  for (const auto& [key, working] : working_) {
    numbers.unfinished += now - working.since;
    numbers.longest = std::max(numbers.longest, now - working.since);
    numbers.longest_call = std::max(numbers.longest_call, now - working.progress);
  }
  return numbers;
}

std::optional<Duration> WorkQueue::NextTimer() {
  MutexLock lock(mutex_);
  if (delayed_.empty()) return std::nullopt;
  return std::max(Duration(0), delayed_.begin()->first - clock_.Monotonic());
}

}  // namespace tfjob::control
