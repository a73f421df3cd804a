// Converts a TFJob's status to and from JSON. Names are those of the API. This project adds
// attempt, ready and restarts, and in each replica status restarts, completedIndexes,
// replacing and selector.
#pragma once

#include "operator/api/tfjob.h"
#include "runtime/base/json.h"

namespace tfjob::api {

// Returns the value of "status". Zero counts are omitted, so an all-zero replica status is
// printed as {}.
Json StatusToJson(const TFJobStatus& status);

// Never fails: any unexpected value (an unknown condition, a string in place of a number, indexes
// that do not parse) counts as absent.
TFJobStatus ReadStatus(const JsonField& status);

}  // namespace tfjob::api
