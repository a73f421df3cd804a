#include "runtime/api/fit/job_role.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/base/mutex.h"

namespace tfjob::api {

tfjob::Status UntilSignal(const SessionOptions& options,
                          const std::function<tfjob::Status(const StopSource&)>& run) {
  std::optional<ScopedStopOnSignals> signals;
  if (options.handle_signals) signals.emplace();
  return run(signals ? signals->source() : NoStop());
}

tfjob::Status TakeTheOnlyRun(const cluster::TfConfig& tf_config) {
  static Mutex mutex;
  static std::set<std::string>* const kUsed = new std::set<std::string>;
  if (IsAlone(tf_config)) return OkStatus();
  MutexLock lock(mutex);
  if (kUsed->insert(tf_config.cluster.address(tf_config.task)).second) return OkStatus();
  return Unimplemented(
      "this process has already taken part in the run of its job, and a task of a job can do so "
      "only once; train for all epochs, or until the last step, in one call, and start the ",
      "process again if that call has failed");
}

tfjob::Status RunUntilJobEnds(train::TaskOptions task, const SessionOptions& options) {
  RETURN_IF_ERROR(TakeTheOnlyRun(task.tf_config));
  const bool serves = cluster::RoleOf(task.tf_config) == cluster::Role::kParameterServer;
  const std::string name = cluster::ToString(task.tf_config.task);
  RETURN_IF_ERROR(UntilSignal(options, [&](const StopSource& stop) {
    train::TaskContext context(std::move(task), stop, RealClock());
    return train::RunTask(context);
  }));
  return JobOver(Cancelled("the job has ended: ", name,
                           serves ? " has served variables" : " has evaluated checkpoints",
                           ", and has no trained model itself"));
}

}  // namespace tfjob::api
