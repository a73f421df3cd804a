#include "tests/simulation/timing.h"

#include <algorithm>

#include "operator/api/conditions.h"
#include "operator/objects/pod.h"

namespace tfjob::simulation {
namespace {

using objects::PodPhase;

// The precision of creation times, which are whole seconds.
constexpr Duration kTruncated = 1s;
constexpr Duration kResetAfter = 10min;

// Returns how long the operator waits before it creates the next pod of a slot.
Duration DelayAfter(size_t pods) {
  constexpr size_t kDoublings = 9;  // after these, the delay has reached its maximum
  if (pods < 2) return Duration::zero();
  return std::min<Duration>(1s * (1 << std::min(pods - 2, kDoublings)), 5min);
}

bool IsAlive(const objects::Pod& pod) {
  return !pod.metadata.terminating() &&
         (pod.phase == PodPhase::kPending || pod.phase == PodPhase::kRunning);
}

}  // namespace

std::string Delays::Check(Cluster& cluster, bool is_quiet) {
  const std::optional<api::TFJob> job = cluster.Job();
  if (!job || MayHaveForgotten(cluster, *job)) slots_.clear();
  if (!job) return "";
  job_ = job->metadata.uid;
  job_generation_ = job->metadata.generation;
  starts_ = cluster.starts();
  for (const auto& pod : cluster.Pods()) {
    if (!pod->metadata.IsControlledBy(job_)) continue;
    const std::string problem = CheckPod(*pod, cluster.clock().Now(), is_quiet);
    if (!problem.empty()) return problem;
  }
  return "";
}

bool Delays::MayHaveForgotten(Cluster& cluster, const api::TFJob& job) const {
  return cluster.has_second_operator() || cluster.starts() != starts_ || job.metadata.uid != job_ ||
         job.metadata.generation != job_generation_ || job.spec.run_policy.suspend ||
         api::IsFinished(job.status) || api::IsTrue(job.status, api::ConditionType::kSuspended);
}

std::string Delays::CheckPod(const objects::Pod& pod, Time now, bool is_quiet) {
  const auto place = policy::SlotOfName(kJob, pod.metadata.name);
  if (!place) return "";
  Slot& slot = slots_[*place];
  const Time created = pod.metadata.creation_timestamp;
  if (slot.newest != pod.metadata.uid) {
    const Duration waited = created + kTruncated - slot.last_alive;
    const Duration wanted = DelayAfter(slot.seen.size());
    if (!slot.newest.empty() && waited < wanted) {
      return StrCat(pod.metadata.name, " was created again after ", FormatDuration(waited),
                    " at most, not ", FormatDuration(wanted));
    }
    slot.newest = pod.metadata.uid;
    slot.last_alive = created;
  }
  if (!IsAlive(pod)) return "";
  slot.last_alive = now;
  if (is_quiet) slot.seen.insert(pod.metadata.uid);
  if (now - created + kTruncated >= kResetAfter) slot.seen.clear();
  return "";
}

std::string CheckFailure(const api::TFJob& job) {
  const api::Condition* failed = api::Find(job.status, api::ConditionType::kFailed);
  if (failed == nullptr || failed->message.find("specified deadline") == std::string::npos) {
    return "";
  }
  const auto& deadline = job.spec.run_policy.active_deadline_seconds;
  if (!deadline || !job.status.start_time || !job.status.completion_time) {
    return "the job failed because of a deadline that it does not have";
  }
  const Duration active = *job.status.completion_time - *job.status.start_time;
  if (active >= std::chrono::seconds(*deadline)) return "";
  return StrCat("the job failed after ", FormatDuration(active), ", before its deadline of ",
                *deadline, " s");
}

std::string CheckDeadlines(Cluster& cluster) {
  const std::optional<api::TFJob> job = cluster.Job();
  if (!job || job->spec.run_policy.suspend) return "";
  const api::RunPolicy& policy = job->spec.run_policy;
  const Time now = cluster.operator_clock().Now();
  if (!api::IsFinished(job->status)) {
    const bool late =
        policy.active_deadline_seconds && job->status.start_time &&
        now - *job->status.start_time >= std::chrono::seconds(*policy.active_deadline_seconds);
    return late ? "the job is still active after its deadline" : "";
  }
  const bool late = policy.ttl_seconds_after_finished && job->status.completion_time &&
                    now - *job->status.completion_time >=
                        std::chrono::seconds(*policy.ttl_seconds_after_finished);
  return late ? "the job still exists after its time to live" : "";
}

}  // namespace tfjob::simulation
