// Counts the restarts of a job:
//
//   status.replicaStatuses[T].restarts = recreations after failure
//                                        + container restart counts of pods gone or being removed
//
// This number never decreases. Restarts of types with policy Never are not counted.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/decision_options.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// Returns the sum of the restarts of all types in the status.
int64_t RestartsInStatus(const api::TFJobStatus& status);
// Returns the number of container restarts in running pods, which the status does not include yet.
int64_t RestartsOfLivingPods(const Replicas& replicas);

// Adds `recreations` and the pod's container restarts to the count of its type. Also records the
// pod's UID in `replacing`, so that the pod is counted only once, however often it is seen.
void CountPod(const objects::Pod& pod, api::ReplicaType type, int32_t recreations,
              api::TFJobStatus& status);
// Returns true if CountPod has already counted the pod.
bool IsCounted(const objects::Pod& pod, api::ReplicaType type, const api::TFJobStatus& status);

// Removes the recorded UIDs of pods that have been gone for DecisionOptions::keep_counted. Before
// that, another operator, or this operator after a restart, may still see such a pod and would
// count it again. If more than kMaxGonePods pods are gone, keeps only the UIDs of those that
// disappeared last. Without a history, removes all UIDs of pods that are gone. Pods in
// Snapshot::departed do not count as gone.
inline constexpr size_t kMaxGonePods = 256;
void ForgetGonePods(const Snapshot& snapshot, const DecisionOptions& options,
                    api::TFJobStatus& status);

}  // namespace tfjob::policy
