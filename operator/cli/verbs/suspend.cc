#include "operator/cli/verbs/suspend.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "operator/api/names.h"
#include "operator/cli/verbs/change.h"

namespace tfjob::cli {

int Suspend(const SuspendOptions& options, const Surroundings& around) {
  const char* verb = options.suspend ? "suspend" : "resume";
  const char* done = options.suspend ? "suspended" : "resumed";
  return ForEachJob(around, options.names, [&](const StoredJob& job) -> Status {
    ASSIGN_OR_RETURN(const bool changed,
                     ChangeSpec(around.cluster, job, [&](const StoredJob& now) -> StatusOr<Json> {
                       RETURN_IF_ERROR(CheckNotEnded(now.job, verb));
                       const JsonField suspend =
                           JsonField(*now.object)["spec"]["runPolicy"]["suspend"];
                       if (suspend.BoolOr(false).value_or(!options.suspend) == options.suspend)
                         return Json();
                       return Json{{"runPolicy", {{"suspend", options.suspend}}}};
                     }));
    const objects::ObjectMeta& metadata = job.job.metadata;
    around.console.out << ResourceName(metadata.name) << " " << (changed ? "" : "already ")
                       << (changed || options.suspend ? done : "not suspended") << "\n";
    const std::string_view queue = metadata.label(api::kQueueLabel);
    if (changed && !queue.empty()) {
      around.console.err << "tfjob: note: Kueue decides when jobs of its queue \"" << queue
                         << "\" run, and may change this again\n";
    }
    return OkStatus();
  });
}

}  // namespace tfjob::cli
