// Writes the arguments of a call in a functional model. Private to this package.
#pragma once

#include <vector>

#include "runtime/base/json.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Returns the element of `inbound_nodes` that Keras 3 writes for this call. `tensors` contains the
// inputs in Keras' form, and `masks` their masks, with null for an input without a mask.
Json WriteCall(const Model& model, const Call& call, std::vector<Json> tensors,
               std::vector<Json> masks);

}  // namespace tfjob::model
