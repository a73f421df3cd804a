// Maps gang schedulers to the kinds of their pod groups, and back.
#pragma once

#include "operator/objects/kind.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::render {

// Returns Volcano's kind for kNone.
objects::Kind PodGroupKind(policy::GangScheduler scheduler);
// `kind` must be a pod group's.
policy::GangScheduler SchedulerOf(objects::Kind kind);

}  // namespace tfjob::render
