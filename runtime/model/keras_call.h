// Reads one call of a layer in Keras' form, outside of a model.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/model/layer/layer.h"

namespace tfjob::model {

struct KerasCall {
  LayerConfig layer;                // including the arguments of the call
  std::vector<std::string> inputs;  // the names of the layers that produce the inputs, in order
};

// Reads a layer and one of its calls: `node` is an element of `inbound_nodes`. Returns
// InvalidArgument in the same cases as ReadKerasJson (keras.h).
StatusOr<KerasCall> ReadKerasCall(const Json& layer, const Json& node);

}  // namespace tfjob::model
