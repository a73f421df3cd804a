// What users should know about pods that are there and do not get on: images that cannot be pulled,
// containers that crash and are restarted in place, pods that no node can take.
#pragma once

#include <vector>

#include "operator/objects/pod.h"
#include "operator/policy/verdict.h"

namespace tfjob::policy {

// Standing events about one active pod (Pending or Running, not terminating), appended to `events`:
// a container that ended with another code than 0, or waits and says why; without any container
// status, the newest condition that is not True. The reasons are those of the container or
// condition.
void WarnAboutPod(const objects::Pod& pod, std::vector<Event>& events);

}  // namespace tfjob::policy
