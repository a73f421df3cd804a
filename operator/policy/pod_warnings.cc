#include "operator/policy/pod_warnings.h"

#include <algorithm>

#include "operator/api/reasons.h"
#include "operator/objects/last_line.h"
#include "operator/policy/last_words.h"

namespace tfjob::policy {
namespace {

using State = objects::ContainerStatus::State;

void Warn(std::string reason, std::string message, std::string cause,
          std::vector<JobEvent>& events) {
  if (reason.empty()) reason = "Error";
  events.push_back({objects::EventType::kWarning, std::move(reason), std::move(message),
                    std::move(cause), true});
}

std::string CauseOf(const objects::Pod& pod, const objects::ContainerStatus& container) {
  return StrCat("container/", pod.metadata.uid, "/", container.name, "/", container.reason);
}

void WarnAboutContainer(const objects::Pod& pod, const objects::ContainerStatus& container,
                        std::vector<JobEvent>& events) {
  const std::string& name = pod.metadata.name;
  if (container.state == State::kTerminated && container.exit_code != 0) {
    Warn(container.reason,
         api::ContainerTerminatedMessage(name, container.name, container.exit_code,
                                         LastWords(container)),
         StrCat(CauseOf(pod, container), "/", container.restart_count), events);
  } else if (container.state == State::kWaiting && !container.message.empty()) {
    const std::string words = LastWords(container);
    const std::string message = objects::LastLine(container.message) +
                                (words.empty() ? "" : StrCat("; it last said: ", words));
    Warn(container.reason, api::ContainerWaitingMessage(name, container.name, message),
         CauseOf(pod, container), events);
  }
}

const objects::PodCondition* NewestCondition(const objects::Pod& pod) {
  const auto newest = std::max_element(
      pod.conditions.begin(), pod.conditions.end(),
      [](const auto& a, const auto& b) { return a.last_transition_time < b.last_transition_time; });
  return newest == pod.conditions.end() ? nullptr : &*newest;
}

}  // namespace

void WarnAboutPod(const objects::Pod& pod, std::vector<JobEvent>& events) {
  const bool active = !pod.metadata.terminating() && pod.phase != objects::PodPhase::kSucceeded &&
                      pod.phase != objects::PodPhase::kFailed;
  if (!active) return;
  for (const objects::ContainerStatus& container : pod.containers) {
    WarnAboutContainer(pod, container, events);
  }
  if (!pod.containers.empty()) return;
  const objects::PodCondition* condition = NewestCondition(pod);
  if (condition == nullptr || condition->status == "True" || condition->reason.empty()) return;
  Warn(condition->reason, api::PodConditionMessage(pod.metadata.name, condition->message),
       StrCat("condition/", pod.metadata.uid, "/", condition->reason), events);
}

}  // namespace tfjob::policy
