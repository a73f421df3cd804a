// Finds the key of a pod's trainer, so that this process can ask the trainer for its progress.
#pragma once

#include <optional>

#include "runtime/base/json.h"
#include "runtime/wire/job_key.h"

namespace tfjob::view {

// Returns the value of TFJOB_KEY in the `tensorflow` container of a v1 Pod; nullopt if the
// container does not have the variable, or takes its value from elsewhere, such as a Secret. If the
// variable is set twice, the last valid value is used.
std::optional<wire::JobKey> KeyOfPod(const Json& pod);

}  // namespace tfjob::view
