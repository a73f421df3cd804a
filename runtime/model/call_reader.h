// Reads the arguments of a call in a functional model. Private to this package.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/model/layer/call_arguments.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Refers to a value as Keras does: by the layer's name, the index of the layer's call, and the
// index of the call's output.
struct History {
  std::string layer;
  int64_t node = 0;
  int64_t tensor = 0;
};

// Returns whether the value has the form of a History: [layer, number, number, …].
bool IsHistory(const Json& value);
StatusOr<History> ReadHistory(const JsonField& field);

// The arguments of one call.
struct CallForm {
  std::vector<History> inputs;
  // The masks of the inputs, one per input, if they are given.
  std::vector<std::optional<History>> masks = {};
  // The layer with the arguments of this call, if it takes arguments besides its inputs.
  std::optional<LayerConfig> config;
};

// Reads one element of `inbound_nodes`, as Keras 3 or tf.keras 2 writes it. Returns InvalidArgument
// if it has an argument that the layer does not take.
StatusOr<CallForm> ReadCall(const JsonField& node, const Layer& layer);

}  // namespace tfjob::model
