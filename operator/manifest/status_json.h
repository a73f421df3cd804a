// The decoding half of a TFJob's status.
#pragma once

#include "operator/api/tfjob.h"
#include "runtime/base/json.h"

namespace tfjob::manifest {

// Never fails: what is not as expected (an unknown condition, a text for a number, indexes that do not parse) counts as
// absent.
api::TFJobStatus ReadStatus(const JsonField& status);

}  // namespace tfjob::manifest
