#include "tests/simulation/counts.h"

#include <algorithm>

#include "operator/api/conditions.h"
#include "operator/api/indexes.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "tests/simulation/labels.h"

namespace tfjob::simulation {
namespace {

// The maximum time until the operator must have counted a failure. It exceeds the time for which
// the operator collects counts before it writes them.
constexpr Duration kPatience = 10s;

bool IsCompleted(const api::TFJob& job, const policy::Slot& slot) {
  const auto replica = job.status.replica_statuses.find(slot.type);
  if (replica == job.status.replica_statuses.end()) return false;
  const auto completed = api::IndexSet::Parse(replica->second.completed_indexes);
  return completed.ok() && completed->Contains(slot.index);
}

// Returns whether a failure of this replica with this exit code restarts it, instead of ending the
// job.
bool IsRetried(const api::TFJob& job, const policy::Slot& slot, int code) {
  const auto replica = job.spec.replicas.find(slot.type);
  if (replica == job.spec.replicas.end() || slot.index >= api::Replicas(job, slot.type))
    return false;
  const api::RestartPolicy policy =
      replica->second.restart_policy.value_or(api::RestartPolicy::kNever);
  if (policy == api::RestartPolicy::kExitCode) return code > 127;
  return policy != api::RestartPolicy::kNever;
}

bool Runs(const api::TFJob& job) {
  return !job.metadata.terminating() && !job.spec.run_policy.suspend &&
         !api::IsFinished(job.status) && !api::IsTrue(job.status, api::ConditionType::kSuspended);
}

int64_t RestartsOf(const api::TFJobStatus& status, api::ReplicaType type) {
  const auto found = status.replica_statuses.find(type);
  return found == status.replica_statuses.end() ? 0 : found->second.restarts;
}

int64_t Sum(const api::TFJobStatus& status) {
  int64_t sum = 0;
  for (const auto& [type, replica] : status.replica_statuses) sum += replica.restarts;
  return sum;
}

}  // namespace

void Counts::OnFailure(Cluster& cluster, const objects::Pod& pod, int code) {
  const std::optional<api::TFJob> job = cluster.Job();
  const auto slot = policy::SlotOfName(kJob, pod.metadata.name);
  if (!job || !slot || !pod.metadata.IsControlledBy(job->metadata.uid)) return;
  const bool is_seen = cluster.sees_everything() && !cluster.has_second_operator();
  if (!is_seen || pod.metadata.terminating() || !Runs(*job)) return;
  if (job->spec.run_policy.restart_scope == api::RestartScope::kJob) return;
  if (AttemptOf(pod) != job->status.attempt) return;
  if (IsCompleted(*job, *slot) || !IsRetried(*job, *slot, code)) return;
  pending_.push_back({slot->type, cluster.clock().Monotonic()});
}

bool Counts::MayBeForgotten(Cluster& cluster, const api::TFJob& job) const {
  return !cluster.sees_everything() || cluster.has_second_operator() ||
         cluster.starts() != starts_ || job.metadata.generation != generation_ || !Runs(job);
}

std::string Counts::Check(Cluster& cluster, bool is_settled) {
  const std::optional<api::TFJob> job = cluster.Job();
  if (!job || job->metadata.uid != job_) *this = Counts();
  if (!job) return "";
  if (MayBeForgotten(cluster, *job)) pending_.clear();
  job_ = job->metadata.uid;
  generation_ = job->metadata.generation;
  starts_ = cluster.starts();
  if (is_settled) Settle(cluster.clock().Monotonic());
  for (const auto& [type, least] : least_) {
    const int64_t counted = RestartsOf(job->status, type);
    if (counted >= least) continue;
    return StrCat(api::Name(type), " has ", counted, " restarts, but at least ", least,
                  " happened");
  }
  return "";
}

void Counts::Settle(Duration now) {
  std::erase_if(pending_, [&](const Failure& failure) {
    const bool settled = now - failure.at >= kPatience;
    if (settled) ++least_[failure.type];
    return settled;
  });
}

std::string CheckBackoffLimit(const api::TFJob& job, int64_t restarts, int64_t in_place) {
  const api::Condition* failed = api::Find(job.status, api::ConditionType::kFailed);
  if (failed == nullptr || failed->message.find("specified backoff limit") == std::string::npos)
    return "";
  const auto& limit = job.spec.run_policy.backoff_limit;
  if (!limit) return "the job failed because of a back-off limit that it does not have";
  // The restart that exceeds the limit may be a restart of a container in place.
  const int64_t least = in_place > 0 ? std::max<int64_t>(*limit, 1) : *limit + 1;
  if (restarts >= least) return "";
  return StrCat("the job failed because of its back-off limit of ", *limit, ", after ", restarts,
                " restarts");
}

std::string CheckWithinLimit(const api::TFJob& job) {
  const auto& limit = job.spec.run_policy.backoff_limit;
  if (!limit || !Runs(job) || Sum(job.status) <= *limit) return "";
  return StrCat("the job goes on after ", Sum(job.status), " restarts, although its limit is ",
                *limit);
}

}  // namespace tfjob::simulation
