// Reads one call of a layer in Keras' form, outside of a model.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/model/layer/layer.h"

namespace tfjob::model {

struct KerasCall {
  LayerConfig layer;                // with the arguments of the call
  std::vector<std::string> inputs;  // the layer that produces each tensor, in order
};

// Reads a layer, and an element of `inbound_nodes` that calls it. Returns InvalidArgument in the
// same cases as ReadKerasJson (keras.h).
StatusOr<KerasCall> ReadKerasCall(const Json& layer, const Json& node);

}  // namespace tfjob::model
