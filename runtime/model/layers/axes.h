// Reads axes as Keras counts them: the batch is axis 0, and negative axes count from the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model::layers {

// Returns the axis of one example of shape `in`, or -1 if there is none, or if it is the batch's.
int ExampleAxis(int64_t axis, const Shape& in);
Status NoSuchAxis(int64_t axis, const Shape& in);

// Returns the axes in ascending order, counted from 0 with the batch. Returns InvalidArgument if
// there are none, if one is the batch's or does not exist, or if one comes twice.
StatusOr<std::vector<int64_t>> AxesOfBatch(std::span<const int64_t> axes, const Shape& in);

}  // namespace tfjob::model::layers
