#include "runtime/api/backup.h"

#include <string>

#include "runtime/base/file.h"
#include "runtime/base/file_system.h"

namespace tfjob::api {
namespace {

constexpr int64_t kKeptBackups = 2;

}  // namespace

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
  config.model_dir = backup.backup_dir;
  config.save_checkpoints_steps = backup.save_freq > 0 ? backup.save_freq : steps_per_epoch;
  config.keep_checkpoint_max = kKeptBackups;
  config.save_summary_steps = 0;
}

tfjob::Status RemoveBackup(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    const bool own =
        name == "checkpoint" || name == "finished.json" || name.starts_with("model.ckpt-");
    if (own) RETURN_IF_ERROR(RealFileSystem().Remove(StrCat(folder, "/", name)));
  }
  return OkStatus();
}

}  // namespace tfjob::api
