// Decides which pods of a job should exist: one per slot that is neither done nor given up,
// and no others.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// While the job runs: creates the pods of empty slots (those that may not be created yet wait).
// Deletes pods that are being replaced, pods of earlier attempts, and pods beyond the slots.
void WantPods(Draft& draft);

// While the job is suspended: deletes all pods.
void DropPods(Draft& draft);

// When the job has ended: deletes pods according to cleanPodPolicy.
void CleanUpPods(Draft& draft);

// Handles pods that cannot terminate because their node is gone: deletes them at once if the job
// asks for it, otherwise reports them once.
void HandleLostPods(Draft& draft);

}  // namespace tfjob::policy
