// Asks tasks for their progress, again and again, on a thread of its own.
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
  // Asks every address once an `interval`. A task that does not answer is asked again next time.
  ProgressPoller(std::vector<std::string> addresses, Duration interval);
  ~ProgressPoller();

  // What each address said last.
  std::map<std::string, progress::Progress> Latest();

 private:
  void Poll(const std::vector<std::string>& addresses);
  // Both: whether to go on.
  bool Keep(const std::string& address, StatusOr<progress::Progress> progress);
  bool Rest();

  const Duration interval_;
  Mutex mutex_;
  CondVar stop_;
  std::map<std::string, progress::Progress> latest_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::local
