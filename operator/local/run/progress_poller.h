// Polls tasks for their progress on its own thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/progress/client.h"
#include "runtime/wire/job_key.h"

namespace tfjob::local {

// Polls tasks until it is destroyed. Thread-safe.
class ProgressPoller {
 public:
  // Returns the key of the job that the task at `address` belongs to, nullopt if the job has none,
  // or an error if the task does not exist yet. Called on the poller's thread.
  using KeyOf = std::function<StatusOr<std::optional<wire::JobKey>>(const std::string& address)>;

  // Polls every address, waits for `interval`, and repeats. A task that does not answer is polled
  // again the next time. If a task rejects the key, the next poll gets a new key from `key_of`.
  ProgressPoller(std::vector<std::string> addresses, KeyOf key_of, Duration interval);
  ~ProgressPoller();

  // Returns the last progress reported by each address. Addresses that have never answered
  // are absent.
  std::map<std::string, progress::Progress> Latest();

 private:
  void Poll(const std::vector<std::string>& addresses);
  // `client` is null until the task's key is known.
  StatusOr<progress::Progress> Fetch(const std::string& address,
                                     std::unique_ptr<progress::ProgressClient>& client);
  // Record and Pause return whether to continue polling.
  bool Record(const std::string& address, StatusOr<progress::Progress> progress);
  bool Pause();

  const KeyOf key_of_;
  const Duration interval_;
  Mutex mutex_;
  CondVar stop_;
  std::map<std::string, progress::Progress> latest_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::local
