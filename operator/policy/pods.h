// Which pods of a job should exist: one a slot that is neither done nor given up, and none else.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// While the job runs: creates the pods of empty slots (those that may not come yet wait), deletes
// what is being replaced, pods of earlier attempts, and pods beyond the slots.
void WantPods(Draft& draft);

// While it is suspended: deletes all.
void DropPods(Draft& draft);

// When it has ended: deletes by cleanPodPolicy.
void CleanUpPods(Draft& draft);

// Pods that cannot end because their node is gone: deletes them at once if the job asks for it,
// else tells once.
void HandleLostPods(Draft& draft);

}  // namespace tfjob::policy
