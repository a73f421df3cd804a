// Decides which services of a job should exist: one per slot while the job is running, and
// none otherwise.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// Creates a service for each slot without one, or adopts an orphan with the slot's name. Deletes
// services without a slot.
void WantServices(Draft& draft);

// Deletes all services.
void DropServices(Draft& draft);

}  // namespace tfjob::policy
