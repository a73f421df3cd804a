// Computes the counts in status.replicaStatuses: how many replicas of each type are active, have
// succeeded and have failed.
#pragma once

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// Computes the counts from the states of the replicas. Does not count pods that are terminating,
// gone, or about to be replaced: whether they failed may depend on what this operator has seen of
// them, so another operator might count them differently. Removes the entry of a type that is no
// longer in the spec, unless it contains restarts, completed indexes or UIDs that must be kept.
void CountReplicas(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status);

// Computes the counts of a suspended job. A pod in phase Running counts as active until it is gone,
// even if it is terminating. Otherwise, a queue such as Kueue would assign the pod's resources to
// another job while the pod still uses them.
void CountSuspendedReplicas(const api::TFJob& job, const Replicas& replicas,
                            const Snapshot& snapshot, api::TFJobStatus& status);

// Adjust the counts in the reconcile that ends the job, after CountReplicas. If the job succeeds,
// active replicas count as succeeded. If the job fails, pods that failed or were disrupted count as
// failed, even if they would have been restarted. So do pods that failed permanently and are
// terminating or gone.
void CountAtSuccess(api::TFJobStatus& status);
void CountAtFailure(const Replicas& replicas, api::TFJobStatus& status);

// Computes the status fields that summarise the counts: `ready` and `restarts`.
void Summarize(const api::TFJob& job, api::TFJobStatus& status);

}  // namespace tfjob::policy
