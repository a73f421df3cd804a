// Reads axes as Keras counts them: the batch is axis 0, and negative axes count from the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model::layers {

// Returns the axis in an example of shape `in`, or -1 if there is no such axis or it is the batch
// axis.
int ExampleAxis(int64_t axis, const Shape& in);
Status NoSuchAxis(int64_t axis, const Shape& in);

// Returns the axes in ascending order, counted from 0 with the batch. Returns InvalidArgument if
// the list is empty, or if an axis is the batch axis, does not exist or occurs twice.
StatusOr<std::vector<int64_t>> AxesOfBatch(std::span<const int64_t> axes, const Shape& in);

}  // namespace tfjob::model::layers
