// Declares the reversal of an axis, for layers and functions.
#pragma once

#include <cstdint>

#include "runtime/graph/builder.h"

namespace tfjob::model {

// Reverses the elements of x along the axis. Reports an error to the builder if the axis has more
// than 2^20 elements.
graph::Output Flipped(graph::Builder& b, graph::Output x, int64_t axis);

}  // namespace tfjob::model
