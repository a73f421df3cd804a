// Contains the task's progress. The task's loop updates the progress, or provides a function that
// refreshes it at each read. The progress service on the task's port reads the progress.
// Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/progress/progress.h"

namespace tfjob::train {

class ProgressBoard {
 public:
  explicit ProgressBoard(std::string task) { progress_.task = std::move(task); }

  progress::Progress Get() const {
    progress::Progress progress;
    {
      MutexLock lock(mutex_);
      progress = progress_;
    }
    MutexLock lock(refresh_mutex_);
    if (refresh_) refresh_(progress);
    return progress;
  }
  // Returns the task's state. Does not call the refresh function, because that function may hang.
  progress::State state() const {
    MutexLock lock(mutex_);
    return progress_.state;
  }

  // From now on, Get calls refresh(progress) to complete its result. If `refresh` is null, Get no
  // longer calls a function. When SetRefresh returns, the previous function is no longer running.
  void SetRefresh(std::function<void(progress::Progress&)> refresh) {
    MutexLock lock(refresh_mutex_);
    refresh_ = std::move(refresh);
  }

  // Calls change(Progress&) under the lock.
  template <typename Change>
  void Update(const Change& change) {
    MutexLock lock(mutex_);
    change(progress_);
  }

  // Shows that the run continues without a task that was lost, until the task returns.
  void NoteLoss(const std::string& task, const std::string& message) {
    ShowProblem("lost " + task, message);
    MutexLock lock(mutex_);
    last_loss_ = message;
    ++losses_;
  }
  void NoteReturn(const std::string& task) { ShowProblem("lost " + task, ""); }
  // Describes the latest loss, and the number of earlier ones. "" if no task was lost.
  std::string Losses() const {
    MutexLock lock(mutex_);
    if (losses_ < 2) return last_loss_;
    return StrCat(last_loss_, " (", losses_ - 1,
                  losses_ == 2 ? " earlier loss)" : " earlier losses)");
  }

  // Shows a problem that does not stop the task, or removes the problem if `problem` is "". `what`
  // names the failing part, such as "checkpoints".
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
  std::string last_loss_ ABSL_GUARDED_BY(mutex_);
  int losses_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable Mutex refresh_mutex_;
  std::function<void(progress::Progress&)> refresh_ ABSL_GUARDED_BY(refresh_mutex_);
};

}  // namespace tfjob::train
