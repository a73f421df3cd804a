// Reads and writes the connections of a functional model in Keras' form. Private to this package.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Reads the config of a functional model, as Keras 3 or tf.keras 2 writes it. Returns
// InvalidArgument if a layer is unknown, if calls depend on each other in a cycle, or if two layers
// are incompatible.
StatusOr<Model> ReadFunctional(const JsonField& config);
// Writes Keras 3's config.
Json WriteFunctional(const Model& model);

}  // namespace tfjob::model
