// Defines which failures enableDynamicWorker tolerates.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::policy {

// True if a replica of the type may fail permanently without ending the job: workers under
// enableDynamicWorker. The pod stays, with its logs.
bool ToleratesFailure(const api::TFJob& job, api::ReplicaType type);

}  // namespace tfjob::policy
