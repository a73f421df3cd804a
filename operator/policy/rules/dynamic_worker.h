// What enableDynamicWorker forgives.
#pragma once

#include "operator/api/tfjob.h"

namespace tfjob::policy {

// Whether a replica of the type may fail for good without ending the job: workers under
// enableDynamicWorker. Its pod stays, with its logs.
bool ToleratesFailure(const api::TFJob& job, api::ReplicaType type);

}  // namespace tfjob::policy
