// How a job's restarts are counted: status.replicaStatuses[T].restarts = recreations after failure
// plus the containers' restart counts of pods that are gone or going. It never shrinks. Types with
// policy Never count nothing.
#pragma once

#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// The restarts of all types that the status knows.
int64_t RestartsInStatus(const api::TFJobStatus& status);
// What the containers of living pods have restarted beyond that.
int64_t RestartsOfLivingPods(const Replicas& replicas);

// Adds `recreations` and the pod's container restarts to its type's count and notes its UID in
// `replacing`, so that it is counted once however often it is looked at.
void CountPod(const objects::Pod& pod, api::ReplicaType type, int32_t recreations,
              api::TFJobStatus& status);
// Whether CountPod did so already.
bool IsCounted(const objects::Pod& pod, api::ReplicaType type, const api::TFJobStatus& status);

// Forgets the noted UIDs of pods that exist no more.
void ForgetGonePods(const Snapshot& snapshot, api::TFJobStatus& status);

}  // namespace tfjob::policy
