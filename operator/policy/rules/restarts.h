// Finds the replicas that a reconcile restarts, and counts them in the status. Each failure is
// counted once, whatever happens between the status write and the deletion of the pods.
#pragma once

#include <optional>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// Describes a replica that this reconcile restarts.
struct Restarted {
  Slot slot;
  const objects::Pod* pod = nullptr;  // nullptr if it vanished
  bool disrupted = false;
  const objects::Pod* departed = nullptr;  // the last state of a vanished pod, if known

  bool operator==(const Restarted&) const = default;
};

// Returns the replicas to restart that the status does not record yet:
//  - those that failed and are restarted under their policy;
//  - those that were disrupted;
//  - those that vanished: the pod was alive at the last reconcile and is now gone, and its name
//    does not belong to another owner's object.
// Does not include replicas of types with policy Never.
std::vector<Restarted> FindRestarts(const api::TFJob& job, const Replicas& replicas,
                                    const Snapshot& snapshot, const api::TFJobStatus& status);

// Counts each failure as one restart, and adds the container restarts of all pods in `restarts`.
// Used if restartScope is Replica.
void CountRestarts(const std::vector<Restarted>& restarts, api::TFJobStatus& status);

// Starts a new attempt. Used if restartScope is Job. If any replica failed (and was not merely
// disrupted), counts one restart for the type of the first such replica. Also counts the container
// restarts of all pods of the old attempt, and forgets which Chiefs, Masters and Workers have
// completed.
void StartAttempt(const std::vector<Restarted>& restarts, const Replicas& replicas,
                  api::TFJobStatus& status);

// Counts the container restarts of the replicas' pods before they are deleted (by a suspension or a
// new attempt).
void CountContainerRestarts(const Replicas& replicas, api::TFJobStatus& status);
// Counts the container restarts of surplus pods, and records the UIDs of these pods: if the job is
// scaled up again while they are still terminating, they must not count as disrupted.
void CountSurplusPods(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status);

// Forgets which Chiefs, Masters and Workers have completed, because they start over when the job is
// resumed or a new attempt is started. Completed parameter servers and evaluators remain completed.
void ForgetCompleted(api::TFJobStatus& status);

}  // namespace tfjob::policy
