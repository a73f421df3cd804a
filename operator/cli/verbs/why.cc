#include "operator/cli/verbs/why.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/api/reasons.h"
#include "operator/objects/last_line.h"
#include "operator/policy/decide.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/last_words.h"
#include "operator/policy/rules/managed_by.h"
#include "operator/view/duration.h"
#include "operator/view/human.h"

namespace tfjob::cli {
namespace {

using objects::ContainerStatus;
using objects::Pod;
using Names = std::vector<std::string>;

// Returns the names as text: "a", "a and b", "a, b, c and 3 more".
std::string ListNames(const Names& names) {
  constexpr size_t kShown = 3;
  const size_t shown = std::min(names.size(), kShown);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += StrCat(i == 0 ? "" : last ? " and " : ", ", names[i]);
  }
  if (names.size() > shown) text += StrCat(" and ", names.size() - shown, " more");
  return text;
}

// Ends `text` with exactly one full stop. Messages from other components may lack one.
std::string WithFullStop(std::string text) {
  while (!text.empty() &&
         (text.back() == '.' || std::isspace(static_cast<unsigned char>(text.back()))))
    text.pop_back();
  return text + ".";
}

std::string BeingDeleted(const JobFacts& facts) {
  const objects::ObjectMeta& metadata = facts.job().metadata;
  if (!metadata.terminating()) return "";
  if (metadata.finalizers.empty()) return "It is being deleted.";
  return StrCat(
      "It is being deleted and waits for its finalizers: ", ListNames(metadata.finalizers), ".");
}

std::string Unreadable(const JobFacts& facts) {
  if (facts.stored.readable.ok()) return "";
  return WithFullStop(
      StrCat("Its spec cannot be read, so it cannot run: ", Message(facts.stored.readable)));
}

std::string ManagedElsewhere(const JobFacts& facts) {
  if (!policy::IsManagedElsewhere(facts.job())) return "";
  return StrCat("Another controller manages it (spec.runPolicy.managedBy: \"",
                *facts.job().spec.run_policy.managed_by, "\"), so the operator ignores it.");
}

std::string Suspended(const JobFacts& facts) {
  const api::TFJob& job = facts.job();
  if (!job.spec.run_policy.suspend) return "";
  const std::string_view queue = job.metadata.label(api::kQueueLabel);
  if (!queue.empty()) {
    return StrCat("It is suspended until Kueue admits it from the queue \"", queue, "\".");
  }
  return StrCat("It is suspended (spec.runPolicy.suspend); tfjob resume ", job.metadata.name,
                " starts it.");
}

std::string NotSeen(const JobFacts& facts) {
  const api::TFJob& job = facts.job();
  if (!job.status.conditions.empty()) return "";
  return StrCat("No operator has reconciled it for ",
                view::HumanAge(job.metadata.creation_timestamp, facts.now),
                ": is tfjob-operator running, and does it watch the namespace ",
                job.metadata.name_space, "?");
}

// Returns whether the job has an event with this reason. The operator's --gang-scheduler-name is
// not known here, so only events show whether a job has a pod group.
bool HasEvent(const JobFacts& facts, std::string_view reason) {
  return std::any_of(facts.events.begin(), facts.events.end(),
                     [&](const EventLine& event) { return event.reason == reason; });
}

// Returns whether the job has a pod group of a scheduler with queues. Kubernetes' own scheduler has
// no queues; its pod groups always come with a workload.
bool HasPodGroup(const JobFacts& facts) {
  return HasEvent(facts, api::kReasonCreatedPodGroup) &&
         !HasEvent(facts, api::kReasonCreatedWorkload);
}

// The pods that, by the operator's own rules, should exist but do not. The rules for gangs and
// network policies are not applied, so a pod that only such a rule holds back counts as missing.
struct Missing {
  Names names;
  std::string why;  // why the first of them must not be created yet; "" if all may be
};
Missing MissingPods(const JobFacts& facts) {
  policy::Snapshot snapshot;
  policy::History history;
  snapshot.pods = facts.pods;
  // Assume that the server serves this version. If it does not, the job's conditions and events
  // show this.
  snapshot.native_version = policy::ApiVersionOf(policy::NativeVersion::kV1Beta1);
  snapshot.history = &history;
  const policy::DecisionOptions options;
  api::TFJob job = facts.job();
  job.metadata.annotations.erase(api::kGangSchedulerAnnotation);
  job.metadata.annotations.erase(api::kNetworkPolicyAnnotation);
  policy::Remember(job, snapshot, options, history);
  const policy::Verdict verdict = policy::Decide(job, snapshot, facts.now, options);
  Missing missing;
  for (const policy::PodThatWaits& pod : verdict.waiting_pods) {
    missing.names.push_back(pod.name);
    if (missing.why.empty()) missing.why = pod.why;
  }
  for (const policy::PodToCreate& pod : verdict.create_pods) missing.names.push_back(pod.name);
  return missing;
}

// Returns a clause that names the object that the server refused to create or change. `reason` is
// the reason of the event that reports this.
std::string RefusedObject(std::string_view reason) {
  if (reason == api::kReasonFailedCreatePodGroup) return "Its pod group cannot be created";
  if (reason == api::kReasonFailedCreateWorkload) return "Its workload cannot be created";
  if (reason == api::kReasonFailedCreateNetworkPolicy) {
    return "Its NetworkPolicy cannot be created";
  }
  if (reason == api::kReasonFailedChangeNetworkPolicy) {
    return "Its NetworkPolicy cannot be changed";
  }
  return "Its pods cannot be created";
}

std::string RefusedByTheServer(const JobFacts& facts) {
  constexpr std::array kReasons = {api::kReasonFailedCreateWorkload,
                                   api::kReasonFailedCreatePodGroup,
                                   api::kReasonFailedCreateNetworkPolicy,
                                   api::kReasonFailedChangeNetworkPolicy,
                                   api::kReasonFailedCreatePod,
                                   api::kReasonFailedCreateService,
                                   api::kReasonPodNameTaken,
                                   api::kReasonServiceNameTaken};
  if (MissingPods(facts).names.empty()) return "";
  Time newest_pod;
  for (const auto& pod : facts.pods) {
    newest_pod = std::max(newest_pod, pod->metadata.creation_timestamp);
  }
  for (auto event = facts.events.rbegin(); event != facts.events.rend(); ++event) {
    const bool refusal =
        std::find(kReasons.begin(), kReasons.end(), event->reason) != kReasons.end();
    if (!event->warning || !refusal || event->last < newest_pod) continue;
    return StrCat(WithFullStop(StrCat(RefusedObject(event->reason), ": ", event->message)),
                  " The operator retries automatically.");
  }
  return "";
}

bool IsPending(const Pod& pod) {
  return pod.phase == objects::PodPhase::kPending && !pod.metadata.terminating();
}

std::string Unscheduled(const JobFacts& facts) {
  Names names;
  std::string why;
  for (const auto& pod : facts.pods) {
    if (!IsPending(*pod) || !pod->node_name.empty()) continue;
    names.push_back(pod->metadata.name);
    const objects::PodCondition* scheduled = pod->condition("PodScheduled");
    if (!why.empty() || scheduled == nullptr || scheduled->status == "True") continue;
    why = scheduled->message.empty() ? scheduled->reason : scheduled->message;
  }
  if (names.empty()) return "";
  const std::string who =
      StrCat(ListNames(names), names.size() == 1 ? " has" : " have", " no node");
  if (!why.empty()) return WithFullStop(StrCat(who, ": ", why));
  return StrCat(who, " yet, and no scheduler has reported why.");
}

// Returns a clause that says when the container will be started again; "" if this is unknown. The
// delay in the kubelet's message "back-off 2m40s restarting failed container=…" counts from the
// time when the container last ended.
std::string BackoffEnd(const JobFacts& facts, const Pod& pod, const std::string& message) {
  constexpr std::string_view kWord = "back-off ";
  const size_t at = message.find(kWord);
  const auto last = facts.ExitOf(pod);
  if (at == std::string::npos || !last || last->at == Time()) return "";
  const std::string_view rest = std::string_view(message).substr(at + kWord.size());
  const auto delay = view::ParseDuration(rest.substr(0, rest.find(' ')));
  if (!delay.ok()) return "";
  return StrCat("; it will be started again at ", FormatTime(last->at + *delay));
}

std::string LastWarning(const JobFacts& facts, const Pod& pod) {
  for (auto event = facts.events.rbegin(); event != facts.events.rend(); ++event) {
    if (event->warning && event->object_uid == pod.metadata.uid) {
      return StrCat(event->reason, ": ", event->message);
    }
  }
  return "";
}

std::string WhyContainerWaits(const JobFacts& facts, const Pod& pod,
                              const ContainerStatus& container) {
  const std::string who =
      StrCat("The container ", container.name, " of ", pod.metadata.name, " is waiting: ");
  const bool starting =
      container.reason == "ContainerCreating" || container.reason == "PodInitializing";
  const std::string warning = starting ? LastWarning(facts, pod) : "";
  if (!warning.empty()) return WithFullStop(StrCat(who, warning));
  std::string why = container.reason;
  if (!container.message.empty()) why += StrCat(": ", objects::LastLine(container.message));
  const std::string words = policy::LastWords(container);
  if (!words.empty()) why += StrCat("; it last said: ", words);
  return WithFullStop(StrCat(who, why, BackoffEnd(facts, pod, container.message)));
}

std::string WaitingContainer(const JobFacts& facts) {
  for (const auto& pod : facts.pods) {
    if (pod->metadata.terminating()) continue;
    for (const ContainerStatus& container : pod->containers) {
      if (container.state != ContainerStatus::State::kWaiting || container.reason.empty()) continue;
      return WhyContainerWaits(facts, *pod, container);
    }
    if (IsPending(*pod) && !pod->node_name.empty() && pod->containers.empty()) {
      return StrCat(pod->metadata.name, " has a node, ", pod->node_name,
                    ", whose kubelet has not started it yet.");
    }
  }
  return "";
}

std::string NotReplaced(const JobFacts& facts) {
  const Missing missing = MissingPods(facts);
  if (missing.names.empty()) return "";
  const std::string who = ListNames(missing.names);
  if (!missing.why.empty()) return StrCat("There is no pod ", who, " yet: ", missing.why, ".");
  if (api::IsTrue(facts.job().status, api::ConditionType::kRestarting)) {
    const Duration most = policy::DecisionOptions().restart_delay_maximum;
    return StrCat("There is no pod ", who,
                  " yet: after repeated failures a replica is created "
                  "again with a growing delay, at most ",
                  view::HumanDuration(most), ".");
  }
  if (HasPodGroup(facts)) {
    return StrCat("There is no pod ", who, " yet: its pod group ", facts.job().metadata.name,
                  " may wait for its queue.");
  }
  return StrCat("There is no pod ", who, " yet: the operator has not created it.");
}

}  // namespace

std::string WhyItWaits(const JobFacts& facts) {
  if (std::string deleted = BeingDeleted(facts); !deleted.empty()) return deleted;
  if (api::IsFinished(facts.job().status)) return "";
  for (const auto rule : {Unreadable, ManagedElsewhere, Suspended, NotSeen, RefusedByTheServer,
                          Unscheduled, WaitingContainer, NotReplaced}) {
    if (std::string why = rule(facts); !why.empty()) return why;
  }
  return "";
}

}  // namespace tfjob::cli
