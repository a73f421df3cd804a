#include "operator/cli/verbs/restart.h"

#include <ostream>

#include "operator/api/indexes.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/cli/verbs/access_error.h"
#include "operator/cli/verbs/change.h"
#include "operator/cli/verbs/job_flags.h"
#include "operator/cli/verbs/verbs.h"
#include "operator/policy/facts/pod_end.h"
#include "operator/policy/rules/managed_by.h"

namespace tfjob::cli {
namespace {

Status CheckRestartable(const StoredJob& stored, const ReplicaChoice& replicas) {
  const api::TFJob& job = stored.job;
  RETURN_IF_ERROR(CheckNotEnded(job, "restart"));
  if (!stored.readable.ok()) return Annotate(stored.readable, job.key());
  if (job.spec.run_policy.suspend) {
    return FailedPrecondition(job.key(),
                              ": it is suspended, so none of its pods run; tfjob resume ",
                              job.metadata.name, " starts it again");
  }
  if (policy::IsManagedElsewhere(job)) {
    return FailedPrecondition(job.key(),
                              ": another controller manages it (spec.runPolicy.managedBy)");
  }
  return replicas.CheckAgainst(job);
}

// Returns whether the replica has completed, in which case the operator would not recreate its pod.
bool IsDone(const api::TFJob& job, const policy::Slot& slot, const objects::Pod& pod) {
  const auto status = job.status.replica_statuses.find(slot.type);
  if (status != job.status.replica_statuses.end()) {
    const auto completed = api::IndexSet::Parse(status->second.completed_indexes);
    if (completed.ok() && completed->Contains(slot.index)) return true;
  }
  const auto spec = job.spec.replicas.find(slot.type);
  return spec != job.spec.replicas.end() &&
         policy::JudgeEnd(pod, api::EffectiveRestartPolicy(spec->second)) == policy::PodEnd::kDone;
}

// Returns whether the error means that the pod is gone or has been replaced. In both cases, the
// replica restarts anyway.
bool IsGone(const Status& status) {
  return absl::IsNotFound(status) || absl::IsAborted(status);
}

Status RestartJob(const StoredJob& job, const RestartOptions& options, const VerbContext& context) {
  RETURN_IF_ERROR(CheckRestartable(job, options.replicas));
  ASSIGN_OR_RETURN(const auto pods, PodsOf(context.cluster, job.job));
  std::ostream& out = context.console.out;
  int restarted = 0;
  for (const auto& pod : pods) {
    const objects::ObjectMeta& metadata = pod->metadata;
    const policy::Slot slot = *api::ReplicaIdOf(metadata.labels);
    if (!options.replicas.Contains(slot)) continue;
    if (IsDone(job.job, slot, *pod)) {
      out << "pod/" << metadata.name << " has completed and is left alone\n";
      continue;
    }
    ++restarted;
    if (metadata.terminating()) {
      out << "pod/" << metadata.name << " is already terminating\n";
      continue;
    }
    const Status status = context.cluster.client().Delete(
        {objects::Kind::kPod, metadata.name_space, metadata.name}, {.uid = metadata.uid});
    if (!status.ok() && !IsGone(status)) {
      return Explain(status, context.cluster,
                     StrCat("Pod ", metadata.name_space, "/", metadata.name));
    }
    out << "pod/" << metadata.name << " restarted\n";
  }
  if (restarted > 0) return OkStatus();
  return FailedPrecondition(job.job.key(), ": there is no pod to restart; tfjob describe ",
                            job.job.metadata.name, " shows the job's pods");
}

}  // namespace

int Restart(const RestartOptions& options, const VerbContext& context) {
  return ForEachJob(context, options.names,
                    [&](const StoredJob& job) { return RestartJob(job, options, context); });
}

namespace {

class RestartVerb : public ClusterVerb {
 public:
  RestartVerb() : ClusterVerb("restart", "Restart replicas of TFJobs") {}

  void AddFlags(FlagSet& flags) override {
    AddJobNames(flags, options_.names);
    AddReplicaChoice(flags, options_.replicas);
  }
  int RunOn(const VerbContext& context) override { return Restart(options_, context); }

 private:
  RestartOptions options_;
};

}  // namespace

std::unique_ptr<ClusterVerb> MakeRestartVerb() {
  return std::make_unique<RestartVerb>();
}

}  // namespace tfjob::cli
