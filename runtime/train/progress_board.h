// Holds the task's progress. The task's loop updates it, and the progress service on the task's
// port reads it. Thread-safe.
#pragma once

#include <string>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/progress/progress.h"

namespace tfjob::train {

class ProgressBoard {
 public:
  explicit ProgressBoard(std::string task) { progress_.task = std::move(task); }

  progress::Progress Get() const {
    MutexLock lock(mutex_);
    return progress_;
  }

  // Calls change(Progress&) under the lock.
  template <typename Change>
  void Update(const Change& change) {
    MutexLock lock(mutex_);
    change(progress_);
  }

  // Shows what fails while the task goes on; "" removes it. `what` is "checkpoints", for example.
  void ShowProblem(const std::string& what, const std::string& problem) {
    MutexLock lock(mutex_);
    if (problem.empty()) {
      progress_.problems.erase(what);
    } else {
      progress_.problems[what] = problem;
    }
  }

 private:
  mutable Mutex mutex_;
  progress::Progress progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::train
