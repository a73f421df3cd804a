#include "runtime/api/fit/job_role.h"

#include <optional>
#include <string>
#include <utility>

#include "runtime/api/fit/fit_result.h"

namespace tfjob::api {

tfjob::Status UntilSignal(const SessionOptions& options,
                          const std::function<tfjob::Status(const StopSource&)>& run) {
  std::optional<ScopedStopOnSignals> signals;
  if (options.handle_signals) signals.emplace();
  return run(signals ? signals->source() : NoStop());
}

tfjob::Status RunUntilJobEnds(train::TaskOptions task, const SessionOptions& options,
                              const RunUse& use) {
  const cluster::TfConfig tf_config = task.tf_config;
  ASSIGN_OR_RETURN(task.order, BeginRun(tf_config, use));
  const bool serves = cluster::RoleOf(task.tf_config) == cluster::Role::kParameterServer;
  if (serves && use.followed && !use.folder.empty() && !task.job.uid.empty()) {
    const FitId id{.folder = use.folder, .job_uid = task.job.uid, .run = task.order.number};
    ASSIGN_OR_RETURN(const auto result, ReadFitResult(id, std::nullopt, nullptr));
    if (result) {
      EndRun(tf_config);
      return OkStatus();
    }
  }
  const std::string name = cluster::ToString(task.tf_config.task);
  RETURN_IF_ERROR(UntilSignal(options, [&](const StopSource& stop) {
    train::TaskContext context(std::move(task), stop, RealClock());
    return train::RunTask(context);
  }));
  if (use.followed) {
    EndRun(tf_config);
    return OkStatus();
  }
  return JobOver(Cancelled("the job has ended: ", name,
                           serves ? " has served variables" : " has evaluated checkpoints",
                           ", and has no trained model itself"));
}

}  // namespace tfjob::api
