// Finds the key of a pod's trainer, which this process needs to query the trainer's progress.
#pragma once

#include <optional>

#include "runtime/base/json.h"
#include "runtime/wire/job_key.h"

namespace tfjob::view {

// Returns the value of TFJOB_KEY in the `tensorflow` container of a v1 Pod; nullopt if the
// container does not have the variable or its value comes from elsewhere, such as a Secret. If the
// variable is set twice, the last valid value applies.
std::optional<wire::JobKey> KeyOfPod(const Json& pod);

}  // namespace tfjob::view
