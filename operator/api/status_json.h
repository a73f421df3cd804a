// Converts a TFJob's status to and from JSON. The names are those of Kubeflow's Training Operator.
// This project adds attempt, ready and restarts and, to each replica status, restarts,
// completedIndexes, replacing and selector.
#pragma once

#include "operator/api/tfjob.h"
#include "runtime/base/json.h"

namespace tfjob::api {

// Returns the value of "status". Counts of zero and empty strings and lists are omitted, so a
// replica status without any value becomes {}.
Json StatusToJson(const TFJobStatus& status);

// Reads a status and never fails: treats any unexpected value (an unknown condition, a string in
// place of a number, indexes that cannot be parsed) as absent.
TFJobStatus ReadStatus(const JsonField& status);

}  // namespace tfjob::api
