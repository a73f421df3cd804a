// Finds the elements that an update by rows changes. Only kernels include this header.
#pragma once

#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// An element of a variable, and its gradient.
struct UpdateElement {
  int64_t row;
  uint32_t col;
  float gradient;
  bool exists;
};

// Returns the element that this thread updates.
template <typename Update>
TFJOB_DEVICE UpdateElement ElementOf(const Update& u) {
  const uint32_t element = blockIdx.x * kUpdateThreads + threadIdx.x;
  if (element >= u.count) return {0, 0, 0.0f, false};
  const uint32_t i = element / u.cols, col = element - i * u.cols;
  if (u.index != nullptr) {
    const int32_t value = u.index[i];
    return {i, col,
            value < 0 ? 0.0f : ReadFloat(u.values, u.values_type, value * u.values_stride + col),
            true};
  }
  const int64_t row = u.rows == nullptr ? i : u.rows[i];
  if (row < 0 || row >= u.variable_rows) return {0, 0, 0.0f, false};
  return {row, col, ReadFloat(u.values, u.values_type, i * u.values_stride + col), true};
}

// Applies weight decay. Without weight decay, an infinite weight must stay infinite.
TFJOB_DEVICE void DecayElement(float& w, float decay) {
  w = decay != 0.0f ? w - w * decay : w;
}

}  // namespace
}  // namespace tfjob::kernels::cuda
