// How a pod came to its end, read from its status. A replica is judged by its container
// `tensorflow`; what its sidecars do is their own affair.
#pragma once

#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"
#include "runtime/base/clock.h"

namespace tfjob::policy {

// The exit code of the container `tensorflow`; nothing while it has not ended, or when the node
// never said.
std::optional<int32_t> ExitCode(const objects::Pod& pod);

// Whether the replica has done its work: its container ended with 0, and not because the pod was
// being deleted. Under Always the container starts again, so that nothing is ever done.
bool IsCompleted(const objects::Pod& pod, api::RestartPolicy policy);

// Why the cluster took the pod away from a program that did nothing wrong ("Evicted: the node was
// low on memory"): eviction, preemption, a node that shut down, was lost or could not admit it
// after all. Nothing otherwise.
std::optional<std::string> Disruption(const objects::Pod& pod);

// When the deletion of a terminating pod was asked for.
Time DeletionRequested(const objects::Pod& pod);

// How long the container `tensorflow` has run, or had run when it ended; 0 while it waits.
Duration RunTime(const objects::Pod& pod, Time now);

// The attempt that the pod was created for: its label, or 0 for a pod without a readable one.
int32_t AttemptOf(const objects::Pod& pod);

}  // namespace tfjob::policy
