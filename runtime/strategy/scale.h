// Multiplies contributions by the weight of a rank. Private to this package.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/tensor/dtype.h"

namespace tfjob::strategy {

// Sets each element of `to` to the corresponding element of `from` times `weight`. The spans have
// equal sizes, are the same or do not overlap, and are aligned to their elements, which are float32
// or float64. Does nothing if they are the same and the weight is 1.
void Scale(DType dtype, std::span<const std::byte> from, double weight, std::span<std::byte> to);

}  // namespace tfjob::strategy
