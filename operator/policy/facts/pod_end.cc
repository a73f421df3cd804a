#include "operator/policy/facts/pod_end.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "operator/api/names.h"
#include "operator/policy/facts/restart_policy.h"

namespace tfjob::policy {
namespace {

using State = objects::ContainerStatus::State;

const objects::ContainerStatus* Tensorflow(const objects::Pod& pod) {
  for (const objects::ContainerStatus& container : pod.containers) {
    if (!container.init && container.name == api::kContainerName) return &container;
  }
  return nullptr;
}

// Returns whether `reason`, from status.reason, is one of those that the kubelet, the node
// controller and the scheduler write when they disrupt a pod.
bool IsDisruption(std::string_view reason) {
  constexpr std::array<std::string_view, 9> kReasons = {
      "Evicted",    "NodeLost",     "NodeShutdown",
      "Shutdown",   "Terminated",   "Preempted",
      "Preempting", "NodeAffinity", "UnexpectedAdmissionError"};
  return std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end() ||
         reason.starts_with("OutOf");  // OutOfcpu, OutOfmemory, OutOfpods
}

std::string Describe(const std::string& reason, const std::string& message) {
  return message.empty() ? reason : StrCat(reason, ": ", message);
}

}  // namespace

std::optional<int32_t> ExitCode(const objects::Pod& pod) {
  const objects::ContainerStatus* container = Tensorflow(pod);
  if (container == nullptr || container->state != State::kTerminated) return std::nullopt;
  return container->exit_code;
}

FailureKind JudgeFailure(const objects::Pod& pod, api::RestartPolicy policy) {
  constexpr int32_t kFirstRetryable = 128;
  const RestartBehavior& behavior = BehaviorOf(policy);
  if (!behavior.restarts_replicas) return FailureKind::kPermanent;
  if (Disruption(pod)) return FailureKind::kDisrupted;
  if (behavior.exit_code_decides && ExitCode(pod).value_or(kFirstRetryable) < kFirstRetryable) {
    return FailureKind::kPermanent;
  }
  return FailureKind::kRetryable;
}

bool IsCompleted(const objects::Pod& pod, api::RestartPolicy policy) {
  if (!BehaviorOf(policy).completes_for_good || ExitCode(pod) != 0) return false;
  // A program that exits with 0 in response to SIGTERM was stopped and is not done. Times are whole
  // seconds, so a program that exited in the second of the request counts as stopped.
  return !pod.metadata.terminating() || Tensorflow(pod)->finished_at < DeletionRequested(pod);
}

std::optional<std::string> Disruption(const objects::Pod& pod) {
  if (IsDisruption(pod.reason)) return Describe(pod.reason, pod.message);
  const objects::PodCondition* condition = pod.condition("DisruptionTarget");
  if (condition == nullptr || condition->status != "True") return std::nullopt;
  return Describe(condition->reason.empty() ? condition->type : condition->reason,
                  condition->message);
}

Time DeletionRequested(const objects::Pod& pod) {
  const int64_t grace = pod.metadata.deletion_grace_period_seconds.value_or(0);
  return pod.metadata.deletion_timestamp.value_or(Time()) - std::chrono::seconds(grace);
}

Duration RunTime(const objects::Pod& pod, Time now) {
  const objects::ContainerStatus* container = Tensorflow(pod);
  if (container == nullptr || container->started_at == Time()) return Duration::zero();
  switch (container->state) {
    case State::kWaiting:
      return Duration::zero();
    case State::kRunning:
      return now - container->started_at;
    case State::kTerminated:
      return container->finished_at - container->started_at;
  }
  return Duration::zero();
}

int32_t AttemptOf(const objects::Pod& pod) {
  const std::string_view label = pod.metadata.label(api::kAttemptLabel);
  int32_t attempt = 0;
  const char* end = label.data() + label.size();
  const auto [stop, error] = std::from_chars(label.data(), end, attempt);
  return error == std::errc() && stop == end && attempt > 0 ? attempt : 0;
}

}  // namespace tfjob::policy
