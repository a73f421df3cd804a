// Converts a TFJob's status to and from JSON. The members have the same names as in Kubeflow's
// Training Operator. This project adds attempt, ready and restarts and, to each replica status,
// restarts, completedIndexes, replacing and selector.
#pragma once

#include "operator/api/tfjob.h"
#include "runtime/base/json.h"

namespace tfjob::api {

// Returns the value of "status". Zero counts, empty strings and empty lists are omitted, so a
// replica status without any value becomes {}. Foreign conditions come first, so that the last
// condition is always one of the operator's own.
Json StatusToJson(const TFJobStatus& status);

// Reads a status and never fails: treats any unexpected value (a condition without a type, a string
// in place of a number, indexes that cannot be parsed) as absent.
TFJobStatus ReadStatus(const JsonField& status);

}  // namespace tfjob::api
