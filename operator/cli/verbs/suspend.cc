// tfjob suspend, tfjob resume: set spec.runPolicy.suspend. It is not an error if a job is already
// in the requested state.
#include <nlohmann/json.hpp>
#include <ostream>

#include "operator/api/names.h"
#include "operator/cli/verbs/change.h"
#include "operator/cli/verbs/job_flags.h"
#include "operator/cli/verbs/verbs.h"

namespace tfjob::cli {
namespace {

class SuspendVerb : public ClusterVerb {
 public:
  // `suspend` is the value to set: true for `tfjob suspend`, false for `tfjob resume`.
  explicit SuspendVerb(bool suspend)
      : ClusterVerb(suspend ? "suspend" : "resume",
                    suspend ? "Stop TFJobs until they are resumed" : "Resume suspended TFJobs"),
        suspend_(suspend) {}

  void AddFlags(FlagSet& flags) override { AddJobNames(flags, names_); }

  int RunOn(const VerbContext& context) override {
    return ForEachJob(context, names_,
                      [&](const StoredJob& job) { return SuspendJob(context, job); });
  }

 private:
  Status SuspendJob(const VerbContext& context, const StoredJob& job) const;
  StatusOr<Json> PatchOf(const StoredJob& job) const;

  const bool suspend_;
  std::vector<std::string> names_;
};

StatusOr<Json> SuspendVerb::PatchOf(const StoredJob& job) const {
  RETURN_IF_ERROR(CheckNotEnded(job.job, name()));
  const JsonField suspend = JsonField(*job.object)["spec"]["runPolicy"]["suspend"];
  if (suspend.BoolOr(false).value_or(!suspend_) == suspend_) return Json();
  return Json{{"runPolicy", {{"suspend", suspend_}}}};
}

Status SuspendVerb::SuspendJob(const VerbContext& context, const StoredJob& job) const {
  const char* done = suspend_ ? "suspended" : "resumed";
  ASSIGN_OR_RETURN(
      const bool changed,
      ChangeSpec(context.cluster, job, [this](const StoredJob& now) { return PatchOf(now); }));
  const objects::ObjectMeta& metadata = job.job.metadata;
  context.console.out << ResourceName(metadata.name) << " " << (changed ? "" : "already ")
                      << (changed || suspend_ ? done : "not suspended") << "\n";
  const std::string_view queue = metadata.label(api::kQueueLabel);
  if (changed && !queue.empty()) {
    view::PrintNote(context.console, StrCat("Kueue decides when jobs of its queue \"", queue,
                                            "\" run, and may change this again"));
  }
  return OkStatus();
}

}  // namespace

std::unique_ptr<ClusterVerb> MakeSuspendVerb() {
  return std::make_unique<SuspendVerb>(true);
}

std::unique_ptr<ClusterVerb> MakeResumeVerb() {
  return std::make_unique<SuspendVerb>(false);
}

}  // namespace tfjob::cli
