#include "operator/policy/events.h"

#include <set>

#include "operator/api/reasons.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/pod_end.h"
#include "operator/policy/last_words.h"
#include "operator/policy/pod_warnings.h"
#include "operator/policy/rules/permanent_failure.h"

namespace tfjob::policy {
namespace {

void ReportExit(const objects::Pod& pod, bool standing, Draft& draft) {
  const std::optional<int32_t> code = ExitCode(pod);
  if (!code) return;
  draft.AddEvent(JobEvent{
      objects::EventType::kNormal, api::kReasonExitedWithCode,
      api::ExitedWithCodeMessage(pod.metadata.name_space, pod.metadata.name, *code, LastWords(pod)),
      StrCat("exit/", pod.metadata.uid), standing});
}

// If the replica was disrupted, returns text such as " Pod mnist-worker-1: Evicted: the node was
// low on memory" or, if no cause is known, " Pod mnist-worker-1: deleted". Returns "" if the
// replica failed.
std::string Detail(const Restarted& restart, const Draft& draft) {
  if (!restart.disrupted) return "";
  std::optional<std::string> disruption;
  if (restart.pod != nullptr) disruption = Disruption(*restart.pod);
  return StrCat(" Pod ", draft.NameOf(restart.slot), ": ", disruption.value_or("deleted"));
}

const std::string& UidOf(const Restarted& restart, const Draft& draft) {
  return restart.pod != nullptr ? restart.pod->metadata.uid
                                : draft.history()->Find(restart.slot)->uid;
}

}  // namespace

void ReportExit(const objects::Pod& pod, Draft& draft) {
  ReportExit(pod, false, draft);
}

void ReportLosses(Draft& draft) {
  for (const ReplicaGroup& group : draft.replicas.groups) {
    for (const Replica& replica : group.replicas) {
      if (replica.pod == nullptr) continue;
      const objects::ObjectMeta& pod = replica.pod->metadata;
      const std::string losses = LossesOf(*replica.pod);
      if (losses.empty()) continue;
      draft.AddEvent(objects::EventType::kNormal, api::kReasonWorkerLost,
                     api::WorkerLostMessage(pod.name_space, pod.name, losses),
                     StrCat("lost/", pod.uid));
    }
  }
}

void ReportExitsAtEnd(Draft& draft) {
  for (const ReplicaGroup& group : draft.replicas.groups) {
    const bool tolerated = ToleratesFailure(draft.job, group.type);
    for (const Replica& replica : group.replicas) {
      if ((replica.state == ReplicaState::kFailed && !tolerated) ||
          replica.state == ReplicaState::kRetryable || replica.state == ReplicaState::kDisrupted) {
        ReportExit(*replica.pod, draft);
      }
    }
  }
}

void ReportRestarts(const std::vector<Restarted>& restarts, Draft& draft) {
  std::set<std::pair<api::ReplicaType, bool>> told;
  for (const Restarted& restart : restarts) {
    const bool vanished = restart.pod == nullptr;
    if (!vanished) ReportExit(*restart.pod, draft);
    const api::ReplicaType type = restart.slot.type;
    if (!told.insert({type, vanished}).second) continue;
    // If the pod vanished, the event is standing: the status does not record this, so every
    // reconcile notices it again until the next pod exists.
    draft.AddEvent(JobEvent{objects::EventType::kWarning, api::kReasonRestarting,
                            api::RestartingMessage(draft.job, type) + Detail(restart, draft),
                            StrCat("restart/", UidOf(restart, draft)), vanished});
  }
}

void ReportReplicas(Draft& draft) {
  std::vector<JobEvent> warnings;
  for (const ReplicaGroup& group : draft.replicas.groups) {
    for (const Replica& replica : group.replicas) {
      if (replica.alive()) WarnAboutPod(*replica.pod, warnings);
      if (replica.state == ReplicaState::kFailed) ReportExit(*replica.pod, true, draft);
    }
  }
  for (JobEvent& warning : warnings) draft.AddEvent(std::move(warning));
}

}  // namespace tfjob::policy
