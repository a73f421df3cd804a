#include "runtime/train/model_dir/model_directory.h"

#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/base/file.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "runtime/train/model_dir/log.h"

namespace tfjob::train {

bool MayPass(const Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status);
}

Status ModelDirectory::TryToWrite() const {
  const std::string probe = options_.folder + "/.writable";
  const Status written = WriteFileAtomically(probe, "", *options_.files);
  if (MayPass(written)) {
    kCheckpointLog.Warning("model_dir cannot be written; training goes on", {{"error", written}});
  } else {
    RETURN_IF_ERROR(Annotate(written, "model_dir"));
  }
  return options_.files->Remove(probe);
}

Status ModelDirectory::ClearMark(const std::string& folder) const {
  if (options_.may_write) {
    const StatusOr<std::optional<RunEnd>> own = ReadRunEnd(folder, options_.run);
    if (own.ok() && *own) return OkStatus();
    RETURN_IF_ERROR(Check());
  }
  return ClearFinished(folder);
}

Status ModelDirectory::Sweep() const {
  const StatusOr<std::vector<std::string>> swept =
      io::SweepLeftovers(options_.folder, *options_.files, {.check = options_.may_write});
  if (!swept.ok()) {
    kCheckpointLog.Warning("interrupted writes may have left files", {{"error", swept.status()}});
  } else if (!swept->empty()) {
    kCheckpointLog.Info("removed what interrupted writes had left",
                        {{"files", absl::StrJoin(*swept, ", ")}});
  }
  return Check();
}

Status ModelDirectory::Prepare() {
  RETURN_IF_ERROR(Annotate(MakeDirectories(options_.folder), "model_dir"));
  RETURN_IF_ERROR(TryToWrite());
  RETURN_IF_ERROR(ClearMark(options_.folder + "/eval"));
  RETURN_IF_ERROR(ClearMark(options_.folder));
  return Sweep();
}

// Checks the newest checkpoint before preparing the folder, because the folder might not be the one
// that the chief has checked.
Status ModelDirectory::TakeOver(int64_t term) {
  RETURN_IF_ERROR(Check());
  RETURN_IF_ERROR(CheckLatestCheckpoint(options_.folder, options_.training));
  RETURN_IF_ERROR(Prepare());
  if (options_.late_claim)
    RETURN_IF_ERROR(options_.late_claim->Write(options_.folder, *options_.files));
  taken_over_in_ = term;
  return OkStatus();
}

Status ModelDirectory::Save(const state::Snapshot& snapshot, Time now, int64_t term) {
  if (options_.may_write && taken_over_in_ != term) {
    RETURN_IF_ERROR(TakeOver(term));
    ASSIGN_OR_RETURN(const auto latest, io::LatestCheckpoint(options_.folder));
    if (latest && latest->step == snapshot.global_step) return OkStatus();
  }
  return SaveCheckpoint(options_.folder, options_.training, snapshot, options_.keep, now,
                        *options_.files, {.term = term, .check = options_.may_write});
}

Status ModelDirectory::Mark(int64_t step, Time now) {
  RETURN_IF_ERROR(Check());
  return MarkFinished(options_.folder, options_.run, step, now, *options_.files);
}

}  // namespace tfjob::train
