// Computes the offsets of elements in tensors with any strides. Only kernels include this header.
#pragma once

#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// Offsets in up to four tensors, in elements.
struct Offsets4 {
  int64_t a, b, c, d;
};

// The strides of up to four tensors; null for tensors that are not used.
struct Strides4 {
  const int64_t* a;
  const int64_t* b;
  const int64_t* c;
  const int64_t* d;
};

TFJOB_DEVICE void Advance(int64_t& offset, const int64_t* strides, int axis, uint32_t index) {
  if (strides != nullptr) offset += index * strides[axis];
}

// Returns the offset of an element in each tensor. `element` is the element's index in the order of
// the loops.
TFJOB_DEVICE Offsets4 OffsetsOf(const Loops& loops, const Strides4& strides, uint32_t element) {
  Offsets4 offsets{0, 0, 0, 0};
  for (int axis = loops.rank - 1; axis >= 0; --axis) {
    const uint32_t outer = axis == 0 ? 0 : element / loops.size[axis];
    const uint32_t index = element - outer * loops.size[axis];
    Advance(offsets.a, strides.a, axis, index);
    Advance(offsets.b, strides.b, axis, index);
    Advance(offsets.c, strides.c, axis, index);
    Advance(offsets.d, strides.d, axis, index);
    element = outer;
  }
  return offsets;
}

}  // namespace
}  // namespace tfjob::kernels::cuda
