// Polls tasks for their progress on its own thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/progress/client.h"

namespace tfjob::local {

// Thread-safe.
class ProgressPoller {
 public:
  // Polls every address, then waits for `interval`, and so on. A task that does not answer is
  // polled again the next time.
  ProgressPoller(std::vector<std::string> addresses, Duration interval);
  ~ProgressPoller();

  // Returns the last progress reported by each address. Addresses that have never answered
  // are absent.
  std::map<std::string, progress::Progress> Latest();

 private:
  void Poll(const std::vector<std::string>& addresses);
  // Both return whether to continue.
  bool Record(const std::string& address, StatusOr<progress::Progress> progress);
  bool Pause();

  const Duration interval_;
  Mutex mutex_;
  CondVar stop_;
  std::map<std::string, progress::Progress> latest_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::local
