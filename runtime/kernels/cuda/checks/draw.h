// Draws sizes and shapes for comparisons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::kernels::cuda {

inline int64_t Draw(PhiloxStream& random, std::initializer_list<int64_t> sizes) {
  return sizes.begin()[random.Below(static_cast<uint32_t>(sizes.size()))];
}

// Returns a shape of up to 20,000 elements. Some shapes are empty, have one element, have an odd
// number of elements, or have about the size of a warp or a block.
Shape DrawShape(PhiloxStream& random);
Shape DrawMatrix(PhiloxStream& random);

// Returns dimensions, some of which are 1, odd, or about the size of a warp or a tile. Rarely, one
// of them is 0. There are at most about `most` elements.
std::vector<int64_t> DrawDims(PhiloxStream& random, size_t rank, int64_t most = 20000);

// Returns the numbers from 0 to count - 1 in a random order.
std::vector<int64_t> DrawOrder(PhiloxStream& random, size_t count);

// Returns a shape that broadcasts to the given one.
Shape DrawRepeated(PhiloxStream& random, const std::vector<int64_t>& dims);

// Returns float32, float64, int32, int64, uint8 or bool.
DType DrawType(PhiloxStream& random);

}  // namespace tfjob::kernels::cuda
