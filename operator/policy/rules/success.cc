#include "operator/policy/rules/success.h"

#include <algorithm>

namespace tfjob::policy {
namespace {

bool IsDone(const ReplicaGroup& group) {
  return group.Succeeded() == group.size();
}

bool WorkersDone(const api::TFJob& job, const ReplicaGroup& workers) {
  const bool first_decides = job.spec.success_policy != api::SuccessPolicy::kAllWorkers;
  // kCompleted proves that the exit code is 0. Phase Succeeded alone does not.
  if (first_decides && workers.replicas[0].state == ReplicaState::kCompleted) return true;
  return IsDone(workers);
}

}  // namespace

bool HasSucceeded(const api::TFJob& job, const Replicas& replicas) {
  for (const api::ReplicaType leader : {api::ReplicaType::kChief, api::ReplicaType::kMaster}) {
    if (const ReplicaGroup* group = replicas.Find(leader)) return IsDone(*group);
  }
  if (const ReplicaGroup* workers = replicas.Find(api::ReplicaType::kWorker)) {
    return WorkersDone(job, *workers);
  }
  return replicas.Size() > 0 && std::all_of(replicas.groups.begin(), replicas.groups.end(), IsDone);
}

}  // namespace tfjob::policy
