// Writes functional models in Keras' JSON. Private to this package.
#pragma once

#include <string>

#include "runtime/api/access.h"

namespace tfjob::api {

// Returns the model that computes `outputs` from `inputs`. Propagates the errors of the layers.
StatusOr<Json> WriteFunctional(const Symbols& inputs, const Symbols& outputs,
                               const std::string& name);

}  // namespace tfjob::api
