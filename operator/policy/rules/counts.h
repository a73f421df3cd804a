// status.replicaStatuses: how many replicas of each type are active, succeeded and failed.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// For a job that goes on: terminating pods and those about to be replaced count nowhere. A type
// that left the spec keeps what must not be forgotten, else its entry goes.
void CountReplicas(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status);

// For a suspended job: a pod is active until it is gone, so that its place is not handed out twice.
void CountSuspendedReplicas(const api::TFJob& job, const Replicas& replicas,
                            const Snapshot& snapshot, api::TFJobStatus& status);

// For the look that ends the job, after CountReplicas: success moves every active replica into
// `succeeded`; after failure the failed pods that nobody restarts any more count as failed.
void CountAtSuccess(api::TFJobStatus& status);
void CountAtFailure(const Replicas& replicas, api::TFJobStatus& status);

// The summary of the counts: `ready` and `restarts`.
void Summarize(const api::TFJob& job, api::TFJobStatus& status);

}  // namespace tfjob::policy
