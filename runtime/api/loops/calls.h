// Writes calls of layers in Keras' form. Private to this package.
#pragma once

#include <string>
#include <vector>

#include "runtime/api/access.h"

namespace tfjob::api {

// Returns the call as an element of `inbound_nodes`. `inputs` are the call's inputs in Keras' form.
// `name` is the layer's name, for error messages.
StatusOr<Json> WriteNode(const CallData& call, const std::string& name, std::vector<Json> inputs);

}  // namespace tfjob::api
