// Declares the verbs of interop_tool that describe models.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob {

// {"model": Keras' JSON as text, "inputs": [shape, …], "seed": n (default: 1)} → {name: the initial
// value of the variable, as a flat list}
StatusOr<Json> InitialValues(const Json& request);

}  // namespace tfjob
