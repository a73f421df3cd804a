// A TFJob's status as JSON, both ways. Names are the API's; ours beyond it are attempt, ready and
// restarts, and of each replica status restarts, completedIndexes, replacing and selector.
#pragma once

#include "operator/api/tfjob.h"
#include "runtime/base/json.h"

namespace tfjob::api {

// The value of "status". Zero counts are omitted, so an all-zero replica status prints {}.
Json StatusToJson(const TFJobStatus& status);

// Never fails: what is not as expected (an unknown condition, a text for a number, indexes that do
// not parse) counts as absent.
TFJobStatus ReadStatus(const JsonField& status);

}  // namespace tfjob::api
