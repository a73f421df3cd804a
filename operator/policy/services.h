// Which services of a job should exist: one a slot while the job runs, none else.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// Creates those of slots without one (adopting an orphan of that name), deletes those beyond the
// slots.
void WantServices(Draft& draft);

// Deletes all of them.
void DropServices(Draft& draft);

}  // namespace tfjob::policy
