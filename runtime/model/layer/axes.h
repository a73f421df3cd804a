// Converts axes that are counted as in Keras: the batch is axis 0, and negative axes count from the
// end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model::layers {

// Returns the index of the axis in an example of shape `in`, or -1 if the axis does not exist or is
// the batch axis.
int ExampleAxis(int64_t axis, const Shape& in);
Status NoSuchAxis(int64_t axis, const Shape& in);

// Returns the axes in ascending order, where the batch is axis 0. Returns InvalidArgument if the
// list is empty, or if an axis is the batch axis, does not exist or occurs twice.
StatusOr<std::vector<int64_t>> AxesOfBatch(std::span<const int64_t> axes, const Shape& in);

}  // namespace tfjob::model::layers
