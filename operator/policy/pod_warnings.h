// Warns users about pods that exist but make no progress: images that cannot be pulled, containers
// that crash and are restarted in place, pods that fit on no node.
#pragma once

#include <vector>

#include "operator/objects/pod.h"
#include "operator/policy/verdict.h"

namespace tfjob::policy {

// Appends standing events about one active pod (Pending or Running, not terminating) to `events`:
// for each container that terminated with a non-zero code, or that is waiting and says why. Without
// any container status: for the newest condition, if it is not True. The reasons are those of the
// container or condition.
void WarnAboutPod(const objects::Pod& pod, std::vector<Event>& events);

}  // namespace tfjob::policy
