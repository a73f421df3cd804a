// Determines from a pod's status how the pod ended. Only the container `tensorflow` decides how a
// replica ended; its sidecars do not matter.
#pragma once

#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// Returns the exit code of the container `tensorflow`; nullopt if it has not terminated, or if the
// node never reported how.
std::optional<int32_t> ExitCode(const objects::Pod& pod);

enum class FailureKind {
  kPermanent,  // not restarted under the policy
  kRetryable,  // restarted; counts towards backoffLimit
  kDisrupted,  // restarted; caused by the cluster, not counted
};
// Classifies the failure of a pod in phase Failed. Under Never, every failure is permanent. Under
// every other policy, a disruption is kDisrupted. Any other failure is retryable under Always and
// OnFailure; under ExitCode, it is permanent if the exit code is below 128, and retryable if the
// code is 128 or above (signals; 138 is reserved for users) or unknown.
FailureKind JudgeFailure(const objects::Pod& pod, api::RestartPolicy policy);

// True if the replica has done its work: its container exited with 0, and not because the pod was
// being deleted. Always false under the policy Always, which starts the container again.
bool IsCompleted(const objects::Pod& pod, api::RestartPolicy policy);

// Returns why the cluster ended the pod although its program did nothing wrong ("Evicted: the node
// was low on memory"): the pod was evicted or preempted, or its node shut down, was lost, or could
// not admit the pod. Otherwise, returns nullopt.
std::optional<std::string> Disruption(const objects::Pod& pod);

// Returns the time at which the deletion of a terminating pod was requested.
Time DeletionRequested(const objects::Pod& pod);

// Returns how long the container `tensorflow` has been running, or had run when it terminated; 0 if
// it is waiting.
Duration RunTime(const objects::Pod& pod, Time now);

// Returns the attempt for which the pod was created, read from its label; 0 if the label is missing
// or invalid.
int32_t AttemptOf(const objects::Pod& pod);

}  // namespace tfjob::policy
