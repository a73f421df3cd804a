// Decides which services of a job should exist: one per slot while the job runs, and no others.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// Creates the services of slots without one (adopting an orphan of that name), and deletes those
// beyond the slots.
void WantServices(Draft& draft);

// Deletes all services.
void DropServices(Draft& draft);

}  // namespace tfjob::policy
