// Finds the key that a pod's trainer has, so that this process can ask it for its progress.
#pragma once

#include <optional>

#include "runtime/base/json.h"
#include "runtime/wire/job_key.h"

namespace tfjob::view {

// Returns the value of TFJOB_KEY in the container `tensorflow` of a v1 Pod; nullopt if the
// container does not have the variable, or its value is not in the text of the pod. If the variable
// is set twice, the last valid value counts.
std::optional<wire::JobKey> KeyOfPod(const Json& pod);

}  // namespace tfjob::view
