// Reads the job and the attempt from the metadata of objects that the operator has created.
#pragma once

#include <cstdint>

#include "operator/api/tfjob.h"
#include "operator/objects/pod.h"

namespace tfjob::simulation {

// Returns whether the job is the controller of the object with this metadata.
bool IsOf(const objects::ObjectMeta& metadata, const api::TFJob& job);

// Returns the number of the attempt that the pod belongs to, or 0 if the pod has no label for it.
int32_t AttemptOf(const objects::Pod& pod);

}  // namespace tfjob::simulation
