#include "runtime/api/fit/backup.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/api/compiled_state.h"
#include "runtime/api/fit/callback_states.h"
#include "runtime/base/file.h"
#include "runtime/base/file_system.h"
#include "runtime/base/log.h"

namespace tfjob::api {
namespace {

constexpr int64_t kKeptBackups = 2;
constexpr Logger kBackupLog("api");

// Returns the checkpoint folder. No other files are stored there, so RemoveBackup can delete
// everything in it.
std::string FolderOf(const BackupAndRestore& backup) {
  return StrCat(backup.backup_dir, "/fit-backup");
}

tfjob::Status RemoveCheckpoints(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    const bool own = name == "checkpoint" || name == "finished.json" || name == "group.json" ||
                     name.starts_with("model.ckpt-") || name.starts_with(kCallbackStates);
    if (own) RETURN_IF_ERROR(RealFileSystem().Remove(StrCat(folder, "/", name)));
  }
  return OkStatus();
}

}  // namespace

Status NanHooks::OnBatchEnd(FitControl& run, int64_t /*batch*/, const Metrics& metrics) {
  return std::isfinite(metrics["loss"]) ? Status() : run.StopTraining();
}

namespace {

// Returns Unimplemented if the callback may request an action that is not possible in a task of
// this job.
tfjob::Status CheckNeeds(const Callback& callback, size_t index,
                         const cluster::TfConfig& tf_config) {
  const CallbackHooks& hooks = callback.hooks();
  const int tasks = cluster::TrainingTaskCount(tf_config);  // 0 if unknown
  if (tasks != 1 && HasServers(tf_config) && hooks.MayStopTraining()) {
    return Unimplemented("callbacks: the one at index ", index, " may end the training early, as ",
                         "EarlyStopping and TerminateOnNaN do, but ",
                         tasks > 0 ? StrCat(tasks) : std::string("several"), " tasks train with ",
                         "parameter servers, and the others would continue; remove it, or use ",
                         "all-reduce");
  }
  return OkStatus();
}

}  // namespace

tfjob::Status CheckCallbacks(const std::vector<Callback>& callbacks,
                             const cluster::TfConfig& tf_config) {
  for (size_t i = 0; i < callbacks.size(); ++i) {
    if (!callbacks[i].present())
      return InvalidArgument("callbacks: expected a callback at index ", i, ", got a null pointer");
  }
  for (size_t i = 0; i < callbacks.size(); ++i)
    RETURN_IF_ERROR(CheckNeeds(callbacks[i], i, tf_config));
  return OkStatus();
}

bool TerminatesOnNan(const std::vector<Callback>& callbacks) {
  for (const Callback& callback : callbacks) {
    if (dynamic_cast<const NanHooks*>(&callback.hooks()) != nullptr) return true;
  }
  return false;
}

StatusOr<const BackupAndRestore*> BackupOf(const std::vector<Callback>& callbacks) {
  const BackupAndRestore* found = nullptr;
  for (const Callback& callback : callbacks) {
    const auto* backup = dynamic_cast<const BackupHooks*>(&callback.hooks());
    if (backup == nullptr) continue;
    if (found != nullptr)
      return InvalidArgument("callbacks: expected one BackupAndRestore, got several");
    found = &backup->options;
  }
  if (found == nullptr) return found;
  if (found->backup_dir.empty())
    return InvalidArgument("BackupAndRestore: backup_dir: expected a folder, got \"\"");
  if (found->save_freq < 0) {
    return InvalidArgument("BackupAndRestore: save_freq: expected at least 0, got ",
                           found->save_freq);
  }
  return found;
}

void SetUpBackup(const BackupAndRestore& backup, int64_t steps_per_epoch,
                 config::TrainingConfig& config) {
  config.model_dir = FolderOf(backup);
  config.save_checkpoints_steps = backup.save_freq > 0 ? backup.save_freq : steps_per_epoch;
  config.keep_checkpoint_max = kKeptBackups;
  config.save_summary_steps = 0;
}

void RemoveBackup(const BackupAndRestore& backup) {
  const tfjob::Status removed = RemoveCheckpoints(FolderOf(backup));
  if (removed.ok()) return;
  kBackupLog.Warning("the backup of a training that has ended could not be deleted",
                     {{"folder", FolderOf(backup)}, {"error", removed}});
}

}  // namespace tfjob::api
