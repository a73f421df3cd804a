#include "operator/policy/facts/pod_end.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "operator/api/names.h"
#include "operator/policy/facts/restart_policy.h"

namespace tfjob::policy {
namespace {

using objects::PodPhase;
using State = objects::ContainerStatus::State;

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

const objects::PodCondition* DisruptionTarget(const objects::Pod& pod) {
  const objects::PodCondition* condition = pod.condition("DisruptionTarget");
  return condition != nullptr && condition->status == "True" ? condition : nullptr;
}

bool IsDisrupted(const objects::Pod& pod) {
  return IsDisruption(pod.reason) || DisruptionTarget(pod) != nullptr;
}

// Returns whether the container is known to have exited before a stop that started at `began` could
// have reached it. `began` is Time() if that time is unknown.
bool ExitedBefore(const objects::Pod& pod, Time began) {
  const objects::ContainerStatus* container = Tensorflow(pod);
  return container != nullptr && container->state == State::kTerminated && began != Time() &&
         container->finished_at != Time() && container->finished_at < began - kClockSkew;
}

// Returns the time at which the deletion of the pod was requested; Time() if this is unknown, or if
// no deletion was requested. An API server adds the grace period as nanoseconds in 64 bits, so the
// timestamp is wrong if the period is too long for this.
Time DeletionBegan(const objects::Pod& pod) {
  constexpr int64_t kLongestGrace = INT64_MAX / 1'000'000'000;
  const int64_t grace = pod.metadata.deletion_grace_period_seconds.value_or(0);
  if (!pod.metadata.terminating() || grace < 0 || grace > kLongestGrace) return Time();
  return *pod.metadata.deletion_timestamp - std::chrono::seconds(grace);
}

// Returns the time at which the pod's disruption started; Time() if it is unknown. If status.reason
// names a disruption, ignores a condition that does not come from the kubelet, because it may
// belong to a later disruption.
Time DisruptionBegan(const objects::Pod& pod) {
  const objects::PodCondition* condition = DisruptionTarget(pod);
  const bool known = condition != nullptr &&
                     (!IsDisruption(pod.reason) || condition->reason == "TerminationByKubelet");
  return known ? condition->last_transition_time : Time();
}

enum class Stop { kNone, kDisruption, kDeletion };

// Returns what stopped the pod or is stopping it.
Stop StopOf(const objects::Pod& pod) {
  const bool ended_first = pod.ended_before_deletion || ExitedBefore(pod, DeletionBegan(pod));
  if (pod.metadata.terminating() && !ended_first) return Stop::kDeletion;
  if (IsDisrupted(pod) && !ExitedBefore(pod, DisruptionBegan(pod))) return Stop::kDisruption;
  return Stop::kNone;
}

// Returns true if the pod ran longer than its own spec.activeDeadlineSeconds allows.
bool IsOverdue(const objects::Pod& pod) {
  return pod.phase == PodPhase::kFailed && pod.reason == "DeadlineExceeded";
}

bool IsRestartedInPlace(const objects::Pod& pod, api::RestartPolicy pod_policy) {
  const std::optional<int32_t> code = ExitCode(pod);
  if (!code || pod_policy == api::RestartPolicy::kNever) return false;
  return pod_policy == api::RestartPolicy::kAlways || *code != 0;
}

PodEnd JudgeFailure(const objects::Pod& pod, const RestartBehavior& behavior) {
  constexpr int32_t kFirstRetryable = 128;
  if (!behavior.restarts_replicas) return PodEnd::kFailed;
  const bool permanent =
      behavior.exit_code_decides && ExitCode(pod).value_or(kFirstRetryable) < kFirstRetryable;
  return permanent ? PodEnd::kFailed : PodEnd::kRetryable;
}

// Judges a pod that was not stopped: it ended by itself, or has not ended.
PodEnd JudgeOwnEnd(const objects::Pod& pod, const RestartBehavior& behavior) {
  if (behavior.completes_for_good && ExitCode(pod) == 0 && !IsOverdue(pod)) return PodEnd::kDone;
  switch (pod.phase) {
    case PodPhase::kFailed:
      return JudgeFailure(pod, behavior);
    case PodPhase::kSucceeded:
      return pod.metadata.terminating() ? PodEnd::kDeleted : PodEnd::kSucceeded;
    case PodPhase::kPending:
    case PodPhase::kRunning:
    case PodPhase::kUnknown:
      break;
  }
  if (pod.metadata.terminating()) return PodEnd::kDeleted;
  return IsRestartedInPlace(pod, behavior.pod_policy) ? PodEnd::kRestartedInPlace : PodEnd::kNone;
}

PodEnd JudgeDisruption(const objects::Pod& pod, const RestartBehavior& behavior) {
  const bool ended = pod.phase == PodPhase::kFailed || pod.phase == PodPhase::kSucceeded;
  if (!ended) return pod.metadata.terminating() ? PodEnd::kDeleted : PodEnd::kNone;
  return behavior.restarts_replicas ? PodEnd::kDisrupted : PodEnd::kFailed;
}

}  // namespace

PodEnd JudgeEnd(const objects::Pod& pod, api::RestartPolicy policy) {
  const RestartBehavior& behavior = BehaviorOf(policy);
  switch (StopOf(pod)) {
    case Stop::kDeletion:
      return PodEnd::kDeleted;
    case Stop::kDisruption:
      return JudgeDisruption(pod, behavior);
    case Stop::kNone:
      break;
  }
  return JudgeOwnEnd(pod, behavior);
}

const objects::ContainerStatus* Tensorflow(const objects::Pod& pod) {
  for (const objects::ContainerStatus& container : pod.containers) {
    if (!container.init && container.name == api::kContainerName) return &container;
  }
  return nullptr;
}

std::optional<int32_t> ExitCode(const objects::Pod& pod) {
  const objects::ContainerStatus* container = Tensorflow(pod);
  if (container == nullptr || container->state != State::kTerminated) return std::nullopt;
  return container->exit_code;
}

std::optional<std::string> Disruption(const objects::Pod& pod) {
  if (!IsDisrupted(pod) || ExitedBefore(pod, DisruptionBegan(pod))) return std::nullopt;
  if (IsDisruption(pod.reason)) return Describe(pod.reason, pod.message);
  const objects::PodCondition& condition = *DisruptionTarget(pod);
  return Describe(condition.reason.empty() ? condition.type : condition.reason, condition.message);
}

int32_t AttemptOf(const objects::Pod& pod) {
  const std::string_view label = pod.metadata.label(api::kAttemptLabel);
  int32_t attempt = 0;
  const char* end = label.data() + label.size();
  const auto [stop, error] = std::from_chars(label.data(), end, attempt);
  return error == std::errc() && stop == end && attempt > 0 ? attempt : 0;
}

}  // namespace tfjob::policy
