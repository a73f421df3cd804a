// Computes status.replicaStatuses: how many replicas of each type are active, succeeded and failed.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// For a job that continues: terminating pods and pods about to be replaced are not counted. A type
// removed from the spec keeps what must not be forgotten; otherwise its entry is removed.
void CountReplicas(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status);

// For a suspended job: a pod is active until it is gone, so that its place is not handed out twice.
void CountSuspendedReplicas(const api::TFJob& job, const Replicas& replicas,
                            const Snapshot& snapshot, api::TFJobStatus& status);

// For the reconcile that ends the job, after CountReplicas. On success, every active replica
// becomes `succeeded`. On failure, failed pods that will not be restarted any more count as failed.
void CountAtSuccess(api::TFJobStatus& status);
void CountAtFailure(const Replicas& replicas, api::TFJobStatus& status);

// Computes the summary of the counts: `ready` and `restarts`.
void Summarize(const api::TFJob& job, api::TFJobStatus& status);

}  // namespace tfjob::policy
