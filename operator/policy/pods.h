// Decides which pods of a job should exist: one for each slot whose replica has neither completed
// nor failed permanently, and no others.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// In a running job, creates the pods of empty slots, except those that must wait. Deletes pods that
// are being replaced, pods of earlier attempts, and pods without a slot.
void WantPods(Draft& draft);

// Deletes all pods of a suspended job.
void DropPods(Draft& draft);

// Deletes the pods of a job that has ended, according to cleanPodPolicy.
void CleanUpPods(Draft& draft);

// Handles terminating pods that are lost because their node is not Ready or is gone. Deletes them
// with grace period 0 if the job's annotation requests this; otherwise, reports each pod once.
void HandleLostPods(Draft& draft);

}  // namespace tfjob::policy
