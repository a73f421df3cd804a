#include "tests/simulation/oracle.h"

#include <algorithm>

#include "operator/api/conditions.h"
#include "operator/api/indexes.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/counts.h"
#include "tests/simulation/labels.h"

namespace tfjob::simulation {
namespace {

using api::ReplicaType;

// Returns whether a completed replica of this type runs again in the next attempt. Parameter
// servers and evaluators do not run again.
bool StartsOver(ReplicaType type) {
  return type != ReplicaType::kPS && type != ReplicaType::kEvaluator;
}

}  // namespace

void Oracle::OnExit(const objects::Pod& pod, int code, bool stopped) {
  const objects::OwnerReference* controller = pod.metadata.controller();
  const auto slot = policy::SlotOfName(kJob, pod.metadata.name);
  if (controller == nullptr || !slot) return;
  Life& life = lives_[controller->uid];
  ++life.exits;
  if (stopped) return;
  if (code == 0) {
    life.done.insert({*slot, StartsOver(slot->type) ? AttemptOf(pod) : 0});
  } else {
    ++life.restarts[slot->type];
    ++life.failures;
  }
}

void Oracle::OnContainerRestart(const objects::Pod& pod) {
  const objects::OwnerReference* controller = pod.metadata.controller();
  const auto slot = policy::SlotOfName(kJob, pod.metadata.name);
  if (controller == nullptr || !slot) return;
  Life& life = lives_[controller->uid];
  ++life.restarts[slot->type];
  ++life.in_place;
}

Oracle::Causes Oracle::CausesOf(const std::string& job_uid) const {
  const auto life = lives_.find(job_uid);
  if (life == lives_.end()) return {};
  return {life->second.exits, life->second.suspensions, life->second.in_place};
}

std::string Oracle::Check(const std::optional<api::TFJob>& before, const api::TFJob& job) const {
  static const Life kNothing;
  const auto found = lives_.find(job.metadata.uid);
  const Life& life = found == lives_.end() ? kNothing : found->second;
  std::string problem = CheckCompleted(job, life);
  if (problem.empty()) problem = CheckRestarts(job, life);
  if (problem.empty())
    problem = CheckBackoffLimit(job, life.failures + life.in_place, life.in_place);
  const bool ends = !before || !api::IsFinished(before->status);
  if (problem.empty() && ends && api::IsSucceeded(job.status)) problem = CheckSucceeded(job, life);
  return problem;
}

std::string Oracle::CheckCompleted(const api::TFJob& job, const Life& life) {
  for (const auto& [type, replica] : job.status.replica_statuses) {
    const auto completed = api::IndexSet::Parse(replica.completed_indexes);
    if (!completed.ok()) return StrCat("completedIndexes is ", replica.completed_indexes);
    int64_t done = 0;
    for (const auto& [slot, attempt] : life.done) {
      const bool counts = !StartsOver(type) || attempt == job.status.attempt;
      if (slot.type == type && counts && completed->Contains(slot.index)) ++done;
    }
    if (done < completed->size()) {
      return StrCat(api::Name(type), " ", replica.completed_indexes,
                    " completed, but not all of them exited with 0 by themselves");
    }
  }
  return "";
}

std::string Oracle::CheckSucceeded(const api::TFJob& job, const Life& life) {
  const auto is_done = [&](ReplicaType type, int32_t index) {
    const int32_t attempt = StartsOver(type) ? job.status.attempt : 0;
    return life.done.contains({{type, index}, attempt});
  };
  const auto all_done = [&](ReplicaType type) {
    for (int32_t i = 0; i < api::Replicas(job, type); ++i) {
      if (!is_done(type, i)) return false;
    }
    return true;
  };
  const auto judge = [&](bool done) {
    return done ? "" : "the job is Succeeded, but its programs did not exit with 0 by themselves";
  };
  for (const ReplicaType leader : {ReplicaType::kChief, ReplicaType::kMaster}) {
    if (api::Replicas(job, leader) > 0) return judge(all_done(leader));
  }
  if (api::Replicas(job, ReplicaType::kWorker) > 0) {
    const bool first_decides = job.spec.success_policy != api::SuccessPolicy::kAllWorkers;
    return judge((first_decides && is_done(ReplicaType::kWorker, 0)) ||
                 all_done(ReplicaType::kWorker));
  }
  return judge(std::all_of(api::kReplicaTypes.begin(), api::kReplicaTypes.end(), all_done));
}

std::string Oracle::CheckRestarts(const api::TFJob& job, const Life& life) {
  for (const auto& [type, replica] : job.status.replica_statuses) {
    const auto found = life.restarts.find(type);
    const int64_t happened = found == life.restarts.end() ? 0 : found->second;
    if (replica.restarts <= happened) continue;
    return StrCat(api::Name(type), " has ", replica.restarts, " restarts, but only ", happened,
                  " happened");
  }
  return "";
}

}  // namespace tfjob::simulation
