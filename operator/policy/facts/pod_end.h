// Determines how a pod ended, from its status. A replica is judged by its container `tensorflow`;
// its sidecars do not matter.
#pragma once

#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// Returns the exit code of the container `tensorflow`; nullopt while it has not terminated, or if
// the node never reported it.
std::optional<int32_t> ExitCode(const objects::Pod& pod);

enum class FailureKind {
  kPermanent,  // the policy does not restart it
  kRetryable,  // restarted; counts towards backoffLimit
  kDisrupted,  // restarted; caused by the cluster, not counted
};
// Judges a pod in phase Failed. Never: permanent, whatever the reason. Every other policy restarts
// after a disruption. ExitCode: codes below 128 are permanent; 128 and above (signals; 138 is the
// user's own choice) and an unknown code are retryable. Always and OnFailure: retryable.
FailureKind JudgeFailure(const objects::Pod& pod, api::RestartPolicy policy);

// True if the replica has done its work: its container exited with 0, and not because the pod was
// being deleted. Under Always the container starts again, so no replica is ever done.
bool IsCompleted(const objects::Pod& pod, api::RestartPolicy policy);

// Returns why the cluster took the pod away from a program that did nothing wrong ("Evicted: the
// node was low on memory"): eviction, preemption, or a node that shut down, was lost or could not
// admit it after all. nullopt otherwise.
std::optional<std::string> Disruption(const objects::Pod& pod);

// Returns when the deletion of a terminating pod was requested.
Time DeletionRequested(const objects::Pod& pod);

// Returns how long the container `tensorflow` has run, or ran until it terminated; 0 while
// it is waiting.
Duration RunTime(const objects::Pod& pod, Time now);

// Returns the attempt that the pod was created for, from its label; 0 for a pod without
// a readable one.
int32_t AttemptOf(const objects::Pod& pod);

}  // namespace tfjob::policy
