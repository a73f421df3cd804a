#include "operator/cli/verbs/restart.h"

#include <ostream>

#include "operator/api/indexes.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/cli/verbs/access_error.h"
#include "operator/cli/verbs/change.h"
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

// A replica that has completed is not created again.
bool IsDone(const api::TFJob& job, const policy::Slot& slot, const objects::Pod& pod) {
  const auto status = job.status.replica_statuses.find(slot.type);
  if (status != job.status.replica_statuses.end()) {
    const auto completed = api::IndexSet::Parse(status->second.completed_indexes);
    if (completed.ok() && completed->Contains(slot.index)) return true;
  }
  const auto spec = job.spec.replicas.find(slot.type);
  return spec != job.spec.replicas.end() &&
         policy::IsCompleted(pod, api::EffectiveRestartPolicy(spec->second));
}

// The pod is gone or already replaced, so the replica restarts as requested.
bool IsGone(const Status& status) {
  return absl::IsNotFound(status) || absl::IsAborted(status);
}

Status RestartJob(const StoredJob& job, const RestartOptions& options, const Surroundings& around) {
  RETURN_IF_ERROR(CheckRestartable(job, options.replicas));
  ASSIGN_OR_RETURN(const auto pods, PodsOf(around.cluster, job.job));
  std::ostream& out = around.console.out;
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
    const Status status = around.cluster.client().Delete(
        {client::Kind::kPod, metadata.name_space, metadata.name}, {.uid = metadata.uid});
    if (!status.ok() && !IsGone(status)) {
      return Explain(status, around.cluster,
                     StrCat("Pod ", metadata.name_space, "/", metadata.name));
    }
    out << "pod/" << metadata.name << " restarted\n";
  }
  if (restarted > 0) return OkStatus();
  return FailedPrecondition(job.job.key(), ": there is no pod to restart; tfjob describe ",
                            job.job.metadata.name, " shows the job's pods");
}

}  // namespace

int Restart(const RestartOptions& options, const Surroundings& around) {
  return ForEachJob(around, options.names,
                    [&](const StoredJob& job) { return RestartJob(job, options, around); });
}

}  // namespace tfjob::cli
