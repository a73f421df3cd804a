#include "runtime/api/fit/runs_of_job.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/api/compiled_state.h"
#include "runtime/base/mutex.h"

namespace tfjob::api {
namespace {

// The runs of one task. A process has several only in tests.
struct RunsOfTask {
  int32_t begun = 0;
  bool may_begin = true;
  std::vector<int64_t> ends;  // only in the chief
  std::set<std::string> folders;
};

class RunRegistry {
 public:
  StatusOr<train::RunOrder> Begin(const std::string& task, const RunUse& use) {
    MutexLock lock(mutex_);
    RunsOfTask& runs = tasks_[task];
    if (!runs.may_begin) {
      return Unimplemented(
          "this process has already taken part in the run of its job, and a task of a job can do ",
          "so again only after a Fit with followed_by_fit that has succeeded; set followed_by_fit ",
          "in each Fit that another one follows, or train until the last step in one call, and ",
          "start the process again if a call has failed");
    }
    if (!use.folder.empty() && runs.folders.contains(use.folder)) {
      return InvalidArgument("BackupAndRestore: backup_dir: an earlier call has used the folder ",
                             use.folder, "; use another folder in each call");
    }
    runs.may_begin = false;
    if (!use.folder.empty()) runs.folders.insert(use.folder);
    return train::RunOrder{
        .number = runs.begun++, .earlier_ends = runs.ends, .followed = use.followed};
  }

  void End(const std::string& task, std::optional<int64_t> end) {
    MutexLock lock(mutex_);
    RunsOfTask& runs = tasks_[task];
    runs.may_begin = true;
    if (end) runs.ends.push_back(*end);
  }

  void Forget(const std::string& task) {
    MutexLock lock(mutex_);
    tasks_.erase(task);
  }

 private:
  Mutex mutex_;
  std::map<std::string, RunsOfTask> tasks_ ABSL_GUARDED_BY(mutex_);  // by address
};

RunRegistry& Registry() {
  static auto* const kRegistry = new RunRegistry;
  return *kRegistry;
}

const std::string& AddressOf(const cluster::TfConfig& tf_config) {
  return tf_config.cluster.address(tf_config.task);
}

}  // namespace

StatusOr<train::RunOrder> BeginRun(const cluster::TfConfig& tf_config, const RunUse& use) {
  if (IsAlone(tf_config)) return train::RunOrder{.followed = use.followed};
  return Registry().Begin(AddressOf(tf_config), use);
}

void EndRun(const cluster::TfConfig& tf_config, std::optional<int64_t> end) {
  if (!IsAlone(tf_config)) Registry().End(AddressOf(tf_config), end);
}

void ForgetRuns(const cluster::TfConfig& tf_config) {
  Registry().Forget(AddressOf(tf_config));
}

}  // namespace tfjob::api
