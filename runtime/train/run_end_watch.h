// Detects the end of the run in all tasks except the chief, from the chief's progress or from the
// marker in model_dir. Either is enough: a worker may have no access to the folder, the folder may
// show old content for a while, and the chief may exit before a restarted worker can query its
// progress.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/train/task.h"

namespace tfjob::progress {
class ProgressClient;
struct Progress;
}  // namespace tfjob::progress

namespace tfjob::train {

// Owned by one thread.
class RunEndWatch {
 public:
  // `context` must outlive the watch. The folder is read at most once per `folder_every`.
  RunEndWatch(TaskContext& context, Duration folder_every);
  ~RunEndWatch();

  // Returns the step of the last checkpoint once the run is over. Queries the chief at most every 2
  // s, and waits for up to half a second each time. After the first call that returns a step, all
  // later calls return the same step.
  std::optional<int64_t> Ended();
  // Returns the error that the run has ended with, if Ended has found one, and otherwise OK.
  Status Failure() const;
  // Returns whether the chief says that it takes part in a later run (RunOrder). Waits for up to
  // half a second.
  bool ChiefIsInLaterRun();

 private:
  std::optional<RunEnd> FromFolder();
  std::optional<RunEnd> FromChief();
  std::optional<RunEnd> FromEarlierRuns(const progress::Progress& of_chief) const;

  TaskContext& context_;
  const Duration folder_every_;
  std::unique_ptr<progress::ProgressClient> chief_;  // null if its address is unknown
  std::optional<Duration> read_at_;                  // when the folder was read
  std::optional<Duration> asked_at_;                 // when the chief was queried
  std::optional<RunEnd> end_;
  std::string folder_error_;  // the last error that was logged
};

}  // namespace tfjob::train
