// Writes, reads and removes the marker that records the end of a run. The marker is a file in the
// run's folder (finished.json), for tasks that see only the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob::train {

// Identifies the run whose end a marker records. The chief writes a marker in model_dir after the
// last checkpoint, and the evaluator writes one in model_dir/eval after evaluating that checkpoint.
// A run that continues in model_dir removes both. A marker of another job, attempt or run is
// ignored.
struct RunMark {
  std::string job_uid;
  int32_t attempt = 0;
  // Used only if there is no job UID: a marker that is older than this time belongs to an earlier
  // run.
  Time oldest{};
  int32_t number = 0;  // see RunOrder (task.h)
};
// Returns a string for progress::RunEnd that identifies the run, but does not reveal the job's UID.
std::string RunFingerprint(const RunMark& run);

// Describes how a run has ended.
struct RunEnd {
  int64_t step = 0;
  std::string failure;  // why the run has failed (state::RunFailure); "" if it has finished

  bool operator==(const RunEnd&) const = default;
};

Status MarkFinished(const std::string& folder, const RunMark& run, int64_t step, Time now,
                    FileSystem& files = RealFileSystem());
// Writes a marker like MarkFinished, but records that the run has failed.
Status MarkFailed(const std::string& folder, const RunMark& run, const RunEnd& end, Time now,
                  FileSystem& files = RealFileSystem());
Status ClearFinished(const std::string& folder);
// Returns the content of the run's marker, or nullopt if the folder has no marker of this run.
StatusOr<std::optional<RunEnd>> ReadRunEnd(const std::string& folder, const RunMark& run);
// Returns the step from the run's marker, or nullopt if there is no marker of this run or the run
// has failed.
StatusOr<std::optional<int64_t>> FinishedStep(const std::string& folder, const RunMark& run);

}  // namespace tfjob::train
