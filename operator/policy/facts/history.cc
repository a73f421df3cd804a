#include "operator/policy/facts/history.h"

#include <algorithm>
#include <functional>

#include "operator/api/conditions.h"
#include "operator/policy/facts/gone_pods.h"
#include "operator/policy/facts/pod_end.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/reported_causes.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {
namespace {

using State = objects::ContainerStatus::State;

// Updates index.run. Returns how long the `tensorflow` container has been seen running. Once the
// container has terminated, returns how long it ran by its node's clock, if that is shorter or if
// the container was never seen running.
Duration RecordRun(const objects::Pod& pod, Duration now, IndexHistory& index) {
  const objects::ContainerStatus* container = Tensorflow(pod);
  if (container == nullptr || container->state == State::kWaiting) return Duration::zero();
  if (index.run && index.run->started_at != container->started_at) index.run.reset();
  if (container->state == State::kRunning) {
    if (!index.run) index.run = {container->started_at, now};
    return now - index.run->seen_at;
  }
  if (container->started_at == Time()) return Duration::zero();
  const Duration ran = container->finished_at - container->started_at;
  return index.run ? std::min(ran, now - index.run->seen_at) : ran;
}

void RecordPod(const Replica& replica, Duration now, const DecisionOptions& options,
               IndexHistory& index) {
  const objects::Pod& pod = *replica.pod;
  if (index.uid != pod.metadata.uid) {
    const bool first = index.uid.empty();
    index = {.uid = pod.metadata.uid,
             .attempt = AttemptOf(pod),
             .recreations = index.recreations + (first ? 0 : 1)};
  }
  if (RecordRun(pod, now, index) >= options.restart_delay_reset) index.recreations = 0;
  index.vanished = false;
  index.alive = replica.alive();
  if (index.alive) {
    index.lost_at.reset();
  } else if (!index.lost_at) {
    index.lost_at = now;
  }
}

void RecordAbsence(Duration now, IndexHistory& index) {
  if (index.uid.empty()) return;
  if (!index.lost_at) index.lost_at = now;
  if (index.alive) index.vanished = true;
  index.alive = false;
}

void RememberIndexes(const api::TFJob& job, const Snapshot& snapshot,
                     const DecisionOptions& options, History& history) {
  if (job.spec.run_policy.suspend || api::IsFinished(job.status) ||
      api::IsTrue(job.status, api::ConditionType::kSuspended)) {
    history.indexes.clear();
    return;
  }
  const Duration now = snapshot.steady_now;
  const Replicas replicas = Arrange(job, job.status, snapshot);
  std::erase_if(history.indexes,
                [&](const auto& entry) { return replicas.Find(entry.first) == nullptr; });
  for (const ReplicaGroup& group : replicas.groups) {
    if (group.size() == 0) continue;
    std::vector<IndexHistory>& indexes = history.indexes[group.type];
    indexes.resize(group.replicas.size());
    for (int32_t i = 0; i < group.size(); ++i) {
      const Replica& replica = group.replicas[i];
      if (replica.pod != nullptr) {
        RecordPod(replica, now, options, indexes[i]);
      } else {
        RecordAbsence(now, indexes[i]);
      }
    }
  }
}

void RememberGonePods(const api::TFJobStatus& status, const Snapshot& snapshot, History& history) {
  std::map<std::string, Duration, std::less<>> gone;
  for (const std::string_view uid : CountedAndGone(status, snapshot)) {
    const auto since = history.counted_and_gone.find(uid);
    const bool is_new = since == history.counted_and_gone.end();
    gone.emplace(uid, is_new ? snapshot.steady_now : since->second);
  }
  history.counted_and_gone = std::move(gone);
}

}  // namespace

const IndexHistory* History::Find(const Slot& slot) const {
  const auto type = indexes.find(slot.type);
  if (type == indexes.end() || static_cast<size_t>(slot.index) >= type->second.size()) {
    return nullptr;
  }
  const IndexHistory& index = type->second[slot.index];
  return index.uid.empty() ? nullptr : &index;
}

bool History::BlocksPod(const api::TFJob& job, const Slot& slot) const {
  return !blocked_pods.empty() &&
         blocked_pods.contains(api::ReplicaName(job.metadata.name, slot.type, slot.index));
}

void History::RecordPolicyChange(Time now, Duration steady_now) {
  if (policy_changes++ == 0) policy_changes_since = now;
  policy_changed_at = steady_now;
}

void Remember(const api::TFJob& job, const Snapshot& snapshot, const DecisionOptions& options,
              History& history) {
  if (!history.first_seen) history.first_seen = snapshot.steady_now;
  RememberIndexes(job, snapshot, options, history);
  RememberGonePods(job.status, snapshot, history);
  const Duration since_change = snapshot.steady_now - history.policy_changed_at;
  if (since_change >= options.restart_delay_reset) history.policy_changes = 0;
  ForgetSettledCauses(snapshot, history);
}

}  // namespace tfjob::policy
