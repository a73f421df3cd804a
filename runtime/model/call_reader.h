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

// Identifies a value in Keras' form: by the name of the layer, the index of the layer's call, and
// the index of the call's output.
struct History {
  std::string layer;
  int64_t node = 0;
  int64_t tensor = 0;
};

// Returns whether the value has the form of a History: [layer, number, number, …].
bool IsHistory(const Json& value);
StatusOr<History> ReadHistory(const JsonField& field);

// Contains the arguments of one call.
struct CallForm {
  std::vector<History> inputs;
  // The masks of the inputs, one per input. Empty if the call has no mask argument.
  std::vector<std::optional<History>> masks = {};
  // The layer with the arguments of this call. Set only if the layer accepts arguments besides its
  // inputs.
  std::optional<LayerConfig> config;
};

// Reads one element of `inbound_nodes` in the form of Keras 3 or of tf.keras 2. Returns
// InvalidArgument if the call has an argument that the layer does not accept.
StatusOr<CallForm> ReadCall(const JsonField& node, const Layer& layer);

}  // namespace tfjob::model
