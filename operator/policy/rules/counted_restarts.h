// Counts the restarts of a job:
//
//   status.replicaStatuses[T].restarts = recreations after failure
//                                        + container restart counts of pods gone or being removed
//
// This number never decreases. For types with policy Never, nothing is counted.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// Returns the sum of the restarts of all types in the status.
int64_t RestartsInStatus(const api::TFJobStatus& status);
// Returns the number of container restarts of running pods, which the status does not include yet.
int64_t RestartsOfLivingPods(const Replicas& replicas);

// Adds `recreations` and the pod's container restarts to the count of its type. Also records the
// pod's UID in `replacing`, so that it is counted only once, however often it is seen.
void CountPod(const objects::Pod& pod, api::ReplicaType type, int32_t recreations,
              api::TFJobStatus& status);
// True if CountPod has already counted the pod.
bool IsCounted(const objects::Pod& pod, api::ReplicaType type, const api::TFJobStatus& status);

// Removes the recorded UIDs of pods that no longer exist. Keeps those of Snapshot::departed, which
// would otherwise be judged and counted again.
void ForgetGonePods(const Snapshot& snapshot, api::TFJobStatus& status);

}  // namespace tfjob::policy
