// Declares the reversal of an axis, for layers and functions.
#pragma once

#include <cstdint>

#include "runtime/graph/builder.h"

namespace tfjob::model {

// Returns x with the elements of the axis in reverse order. Fails if the axis has more than 2^20
// elements.
graph::Output Flipped(graph::Builder& b, graph::Output x, int64_t axis);

}  // namespace tfjob::model
