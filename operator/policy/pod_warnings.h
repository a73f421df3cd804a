// Warns users about pods that exist but make no progress. For example, the image cannot be pulled,
// a container crashes and is restarted in place, or the pod does not fit on any node.
#pragma once

#include <vector>

#include "operator/objects/pod.h"
#include "operator/policy/verdict.h"

namespace tfjob::policy {

// Appends standing events about a pod to `events` if the pod is active (neither ended nor
// terminating): one for each container that has terminated with a non-zero exit code, or is waiting
// and has a message. If the pod has no container statuses, appends one event for its newest
// condition, provided that the condition is not True and has a reason. The event has the reason of
// the container ("Error" if it has none) or of the condition.
void WarnAboutPod(const objects::Pod& pod, std::vector<JobEvent>& events);

}  // namespace tfjob::policy
