#include "tests/simulation/invariants.h"

#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/conditions.h"
#include "operator/api/indexes.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/api/status_json.h"
#include "operator/policy/facts/slot.h"
#include "tests/simulation/labels.h"

namespace tfjob::simulation {
namespace {

using api::ConditionType;
using objects::Pod;
using objects::PodPhase;

bool IsLive(const Pod& pod) {
  return !pod.metadata.terminating() && pod.phase != PodPhase::kSucceeded &&
         pod.phase != PodPhase::kFailed;
}

std::string ConditionsOf(const api::TFJobStatus& status) {
  return PrintJson(api::StatusToJson(status)["conditions"]);
}

const api::ReplicaStatus& Of(const api::TFJobStatus& status, api::ReplicaType type) {
  static const api::ReplicaStatus kNone;
  const auto found = status.replica_statuses.find(type);
  return found == status.replica_statuses.end() ? kNone : found->second;
}

// Returns the slots (replica type and index) of the job that have not completed.
std::set<policy::Slot> OpenSlots(const api::TFJob& job) {
  std::set<policy::Slot> slots;
  for (const auto& [type, spec] : job.spec.replicas) {
    const auto completed = api::IndexSet::Parse(Of(job.status, type).completed_indexes);
    for (int32_t i = 0; i < api::Replicas(job, type); ++i) {
      if (!completed.ok() || !completed->Contains(i)) slots.insert({type, i});
    }
  }
  return slots;
}

std::string NameOf(const policy::Slot& slot) {
  return api::ReplicaName(kJob, slot.type, slot.index);
}

// Checks that the job has a pod group if and only if it should have one.
std::string CheckGroup(const api::TFJob& job, Cluster& cluster) {
  // If the job has no members, the operator does not look for a group that was created earlier.
  if (api::TotalReplicas(job) == 0) return "";
  const bool is_gang = job.metadata.annotations.contains(api::kGangSchedulerAnnotation);
  const bool runs = !api::IsFinished(job.status) && !job.spec.run_policy.suspend;
  int groups = 0;
  for (const auto& group : cluster.PodGroups()) {
    if (!IsOf(group->metadata, job)) continue;
    ++groups;
    const int64_t members = JsonField(*group->object)["spec"]["minMember"].IntOr(0).value_or(0);
    if (runs && members != api::TotalReplicas(job)) {
      return StrCat("the pod group wants ", members, " members of ", api::TotalReplicas(job));
    }
  }
  const int wanted = is_gang && runs ? 1 : 0;
  return groups == wanted ? "" : StrCat(groups, " pod groups, not ", wanted);
}

std::string CheckEnded(const api::TFJob& job, Cluster& cluster) {
  for (const auto& service : cluster.Services()) {
    if (IsOf(service->metadata, job)) return StrCat(service->metadata.name, " outlives its job");
  }
  const auto policy = job.spec.run_policy.clean_pod_policy.value_or(api::CleanPodPolicy::kNone);
  for (const auto& pod : cluster.Pods()) {
    if (!IsOf(pod->metadata, job) || policy == api::CleanPodPolicy::kNone) continue;
    if (policy == api::CleanPodPolicy::kAll || IsLive(*pod)) {
      return StrCat(pod->metadata.name, " should have been cleaned up");
    }
  }
  return "";
}

std::string CheckSuspended(const api::TFJob& job, Cluster& cluster) {
  if (!api::IsTrue(job.status, ConditionType::kSuspended)) return "Suspended is not True";
  for (const auto& pod : cluster.Pods()) {
    if (IsOf(pod->metadata, job)) return StrCat(pod->metadata.name, " is there while suspended");
  }
  for (const auto& service : cluster.Services()) {
    if (IsOf(service->metadata, job)) {
      return StrCat("service ", service->metadata.name, " is there while suspended");
    }
  }
  return "";
}

std::string CheckCounts(const api::TFJob& job, Cluster& cluster) {
  std::map<api::ReplicaType, int32_t> active;
  for (const auto& pod : cluster.Pods()) {
    const auto slot = policy::SlotOfName(kJob, pod->metadata.name);
    if (!slot || !IsOf(pod->metadata, job) || pod->phase != PodPhase::kRunning) continue;
    if (pod->metadata.terminating() || !OpenSlots(job).contains(*slot)) continue;
    ++active[slot->type];
  }
  for (const auto& [type, spec] : job.spec.replicas) {
    const int32_t told = Of(job.status, type).active;
    if (told == active[type]) continue;
    return StrCat("status says ", told, " active of ", api::Name(type), ", there are ",
                  active[type]);
  }
  return "";
}

std::string CheckRunning(const api::TFJob& job, Cluster& cluster) {
  std::set<policy::Slot> missing = OpenSlots(job);
  for (const auto& pod : cluster.Pods()) {
    if (!IsOf(pod->metadata, job)) continue;
    const auto slot = policy::SlotOfName(kJob, pod->metadata.name);
    const bool has_slot = slot && slot->index < api::Replicas(job, slot->type);
    if (!has_slot) return StrCat(pod->metadata.name, " is one too many");
    if (pod->metadata.terminating()) return StrCat(pod->metadata.name, " never ends");
    missing.erase(*slot);
  }
  if (!missing.empty()) return StrCat(NameOf(*missing.begin()), " has no pod");
  std::set<std::string> services;
  for (const auto& service : cluster.Services()) {
    if (IsOf(service->metadata, job)) services.insert(service->metadata.name);
  }
  for (const auto& [type, spec] : job.spec.replicas) {
    for (int32_t i = 0; i < api::Replicas(job, type); ++i) {
      if (services.erase(NameOf({type, i})) == 0)
        return StrCat(NameOf({type, i}), " has no service");
    }
  }
  if (!services.empty()) return StrCat("service ", *services.begin(), " is one too many");
  return CheckCounts(job, cluster);
}

}  // namespace

// Checks that the job was deleted only by a user or, after its time to live, by the operator.
std::string Invariants::CheckGone(Cluster& cluster) {
  const bool may_be_gone = !before_ || job_was_deleted || before_->metadata.terminating() ||
                           before_->spec.run_policy.ttl_seconds_after_finished.has_value();
  before_.reset();
  attempts_.clear();
  if (!may_be_gone) return "the operator deleted the job";
  for (const auto& pod : cluster.Pods()) {
    const objects::OwnerReference* controller = pod->metadata.controller();
    if (controller == nullptr || controller->kind != api::kKind) continue;
    if (!pod->metadata.terminating()) return StrCat(pod->metadata.name, " is an orphan");
  }
  return "";
}

std::string Invariants::Check(Cluster& cluster, bool is_quiet, bool may_fail) {
  if (std::string problem = delays.Check(cluster, is_quiet); !problem.empty()) return problem;
  const bool is_settled = is_quiet && !may_fail;
  if (std::string problem = counts.Check(cluster, is_settled); !problem.empty()) return problem;
  const std::optional<api::TFJob> job = cluster.Job();
  if (!job) return CheckGone(cluster);
  if (before_ && before_->metadata.uid != job->metadata.uid) before_.reset();
  std::string problem = CheckStatus(*job);
  if (problem.empty()) problem = CheckPods(*job, cluster);
  if (problem.empty()) problem = oracle.Check(before_, *job);
  if (problem.empty()) problem = CheckFailure(*job);
  if (problem.empty()) problem = protection.Check(cluster);
  before_ = *job;
  return problem;
}

std::string Invariants::CheckLimit(Cluster& cluster) const {
  const std::optional<api::TFJob> job = cluster.Job();
  const bool applies = job && oracle.CausesOf(job->metadata.uid).in_place == 0;
  return applies ? CheckWithinLimit(*job) : "";
}

std::string Invariants::CheckStatus(const api::TFJob& job) {
  const api::TFJobStatus& status = job.status;
  if (api::IsSucceeded(status) && api::IsFailed(status)) return "Succeeded and Failed";
  if (!before_) return "";
  const api::TFJobStatus& old = before_->status;
  if (api::IsFinished(old) && ConditionsOf(old) != ConditionsOf(status)) {
    return StrCat("a job that ended changed: ", ConditionsOf(old), " to ", ConditionsOf(status));
  }
  if (status.attempt < old.attempt) return "the attempt shrank";
  for (const auto& [type, replica] : old.replica_statuses) {
    if (Of(status, type).restarts < replica.restarts) return "restarts shrank";
  }
  return "";
}

std::string Invariants::CheckPods(const api::TFJob& job, Cluster& cluster) {
  std::map<std::string, std::string> live;  // by type and index
  std::map<std::string, int32_t> attempts;
  for (const auto& pod : cluster.Pods()) {
    if (!IsOf(pod->metadata, job)) continue;
    attempts[pod->metadata.uid] = AttemptOf(*pod);
    if (!IsLive(*pod)) continue;
    const std::string slot = StrCat(pod->metadata.label(api::kReplicaTypeLabel), "/",
                                    pod->metadata.label(api::kReplicaIndexLabel));
    const auto [other, is_first] = live.emplace(slot, pod->metadata.name);
    if (!is_first) return StrCat("two live pods of ", slot);
  }
  // The pods of a new attempt may be created only after all pods of the previous attempt are gone.
  for (const auto& [uid, attempt] : attempts) {
    if (attempts_.contains(uid)) continue;
    for (const auto& [other, older] : attempts) {
      if (older < attempt) return StrCat("attempt ", attempt, " began beside ", older);
    }
  }
  attempts_ = std::move(attempts);
  return "";
}

std::string CheckQuiet(Cluster& cluster) {
  const std::optional<api::TFJob> job = cluster.Job();
  if (std::string problem = CheckPolicy(cluster); !problem.empty()) return problem;
  if (!job) {
    for (const auto& pod : cluster.Pods()) {
      if (pod->metadata.controller() != nullptr) return StrCat(pod->metadata.name, " is an orphan");
    }
    for (const auto& service : cluster.Services()) {
      if (service->metadata.controller() != nullptr) {
        return StrCat("service ", service->metadata.name, " is an orphan");
      }
    }
    return "";
  }
  if (api::Find(job->status, ConditionType::kCreated) == nullptr) return "the job has no status";
  if (std::string problem = CheckGroup(*job, cluster); !problem.empty()) return problem;
  if (api::IsFinished(job->status)) return CheckEnded(*job, cluster);
  if (job->spec.run_policy.suspend) return CheckSuspended(*job, cluster);
  return CheckRunning(*job, cluster);
}

}  // namespace tfjob::simulation
