// What a look writes into the status about pods that are to be replaced: each failure is counted
// once, whatever happens between the status' write and the pods' deletion.
#pragma once

#include <optional>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/replicas.h"

namespace tfjob::policy {

// A replica whose restart this look decided.
struct Restarted {
  Slot slot;
  const objects::Pod* pod = nullptr;  // nullptr for one that vanished
  bool disrupted = false;
  const objects::Pod* departed = nullptr;  // the last state of one that vanished, when it is known

  bool operator==(const Restarted&) const = default;
};

// The replicas to restart that the status does not know of yet: failed by their policy's word,
// disrupted, or vanished (seen alive by the history, gone at once, and its name free). Types with
// policy Never have none.
std::vector<Restarted> FindRestarts(const api::TFJob& job, const Replicas& replicas,
                                    const Snapshot& snapshot, const api::TFJobStatus& status);

// restartScope Replica: each failure counts one.
void CountRestarts(const std::vector<Restarted>& restarts, api::TFJobStatus& status);

// restartScope Job: a new attempt. Counts one if any replica failed rather than was disrupted, for
// the type of the first; the containers' restarts of the whole attempt are taken over. Chief,
// Master and Worker forget what was completed.
void StartAttempt(const std::vector<Restarted>& restarts, const Replicas& replicas,
                  api::TFJobStatus& status);

// Pods that go for another reason (suspension, scale down) leave their containers' restarts behind.
void CountContainerRestarts(const Replicas& replicas, api::TFJobStatus& status);
// Surplus pods are noted besides: when their slots are wanted again while they still end, nobody
// took them away.
void CountSurplusPods(const api::TFJob& job, const Replicas& replicas, api::TFJobStatus& status);

// Resume and a new attempt begin anew for Chief, Master and Worker; what servers and evaluators
// completed stays.
void ForgetCompleted(api::TFJobStatus& status);

}  // namespace tfjob::policy
