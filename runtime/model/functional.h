// Reads and writes the connections of a functional model in Keras' form. Private to this package.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Reads the config of a functional model in the form of Keras 3 or of tf.keras 2. Returns
// InvalidArgument if a layer is unknown, if the calls form a cycle, or if two layers are
// incompatible.
StatusOr<Model> ReadFunctional(const JsonField& config);
// Returns the config in the form of Keras 3.
Json WriteFunctional(const Model& model);

}  // namespace tfjob::model
