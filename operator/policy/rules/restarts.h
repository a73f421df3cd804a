// Writes into the status what a reconcile decides about pods to be replaced: each failure is
// counted once, whatever happens between the status write and the deletion of the pods.
#pragma once

#include <optional>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"

namespace tfjob::policy {

// A replica that this reconcile decided to restart.
struct Restarted {
  Slot slot;
  const objects::Pod* pod = nullptr;  // nullptr if it vanished
  bool disrupted = false;
  const objects::Pod* departed = nullptr;  // last state of a pod that vanished, if known

  bool operator==(const Restarted&) const = default;
};

// Returns the replicas to restart that the status does not know of yet: failed by their policy,
// disrupted, or vanished (seen alive by the history, then suddenly gone, and the name is free).
// Types with policy Never have none.
std::vector<Restarted> FindRestarts(const api::TFJob& job, const Replicas& replicas,
                                    const Snapshot& snapshot, const api::TFJobStatus& status);

// restartScope Replica: each failure counts as one restart.
void CountRestarts(const std::vector<Restarted>& restarts, api::TFJobStatus& status);

// restartScope Job: starts a new attempt. Counts one restart, for the type of the first failed
// replica, if any replica failed rather than was disrupted; takes over the container restarts of
// the whole attempt. Forgets what Chief, Master and Worker completed.
void StartAttempt(const std::vector<Restarted>& restarts, const Replicas& replicas,
                  api::TFJobStatus& status);

// Counts the container restarts of pods that are deleted for another reason
// (suspension, scale-down).
void CountContainerRestarts(const Replicas& replicas, api::TFJobStatus& status);
// Also records the UIDs of surplus pods: if their slots are wanted again while they terminate, they
// do not count as disrupted.
void CountSurplusPods(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status);

// Resuming and a new attempt start over for Chief, Master and Worker; what parameter servers and
// evaluators completed stays.
void ForgetCompleted(api::TFJobStatus& status);

}  // namespace tfjob::policy
