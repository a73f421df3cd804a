// Determines from a pod's last known state how the pod ended. Only the `tensorflow` container
// decides how a replica ended; its sidecars do not matter.
#pragma once

#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// How far the clock of a node may be behind the clocks of the components that stop pods. This
// includes one second for truncation, because Kubernetes stores whole seconds.
inline constexpr Duration kClockSkew = 3s;

enum class PodEnd {
  kNone,              // has not ended
  kRestartedInPlace,  // its container ended, and the kubelet starts it again
  kDone,              // has done its work: its container exited with 0, and was not stopped
  kSucceeded,         // phase Succeeded, but not known to be done (policy Always, or no exit code)
  kFailed,            // failed, and is not restarted under the policy
  kRetryable,         // failed, and is restarted; counts towards backoffLimit
  kDisrupted,         // stopped by the cluster, and is restarted; not counted
  kDeleted,           // is being deleted, and did not end before that
};

// Determines how the pod ended, given its replica's restart policy. No other function decides this.
//
// An exit may be the program's response to being stopped. This is the case if the exit came
//  * after the deletion of the pod was requested (deletionTimestamp less the grace period), or
//  * after the pod's disruption started (the last transition of the condition DisruptionTarget). If
//    the pod was disrupted but this time is unknown, every exit counts as a response.
// Both times are assumed to be kClockSkew earlier than recorded. An exit without a time also counts
// as a response. If ended_before_deletion is set, no exit was a response to the deletion.
//
//  * If the exit was a response to a deletion, the pod is kDeleted, regardless of its exit code.
//  * If the exit was a response to a disruption, the pod is kDisrupted once its phase is Failed or
//    Succeeded, regardless of its exit code; under Never, the pod is kFailed.
//  * Otherwise, exit code 0 means kDone in every phase. Under Always, the kubelet starts the
//    container again, so the pod is never done. Nor is it done if the pod's own
//    activeDeadlineSeconds stopped it.
//  * Any other end in phase Failed is a failure. Under Never, the failure is permanent; under
//    Always and OnFailure, it is retryable; under ExitCode, it is permanent if the exit code is
//    below 128, and retryable if the code is 128 or above (signals; 138 is reserved for users) or
//    unknown.
PodEnd JudgeEnd(const objects::Pod& pod, api::RestartPolicy policy);

// Returns the `tensorflow` container; nullptr if the pod has no status for it.
const objects::ContainerStatus* Tensorflow(const objects::Pod& pod);

// Returns the exit code of the `tensorflow` container; nullopt if it has not terminated, or if its
// node never reported how it terminated.
std::optional<int32_t> ExitCode(const objects::Pod& pod);

// If the cluster stopped the pod and the program was not the cause, returns the reason, such as
// "Evicted: the node was low on memory". The cluster has stopped the pod if the pod was evicted or
// preempted, or if its node shut down, was lost, or could not admit the pod. Returns nullopt if the
// pod was not disrupted, or had ended before the disruption.
std::optional<std::string> Disruption(const objects::Pod& pod);

// Returns the attempt for which the pod was created, read from its label; 0 if the label is missing
// or invalid.
int32_t AttemptOf(const objects::Pod& pod);

}  // namespace tfjob::policy
