// Defines the layout of a matrix of the fake library (fake_blas.h), with functions that read and
// write its elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/cuda/blas_api.h"

namespace tfjob::device::cuda {

struct FakeLayout {
  unsigned type = kBlasFloat32;
  int64_t rows = 0, cols = 0, ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;

  bool operator==(const FakeLayout&) const = default;
  // Returns the number of elements from the first to the last, including the gaps between them.
  int64_t extent() const { return (batch - 1) * stride + (cols - 1) * ld + rows; }
  // Return the sizes in bytes of an element, of a number of elements, and of all matrices.
  size_t size() const { return type == kBlasFloat32 ? 4 : 2; }
  size_t bytes(int64_t elements) const { return static_cast<size_t>(elements) * size(); }
  size_t bytes() const { return bytes(extent()); }

  // Returns the address of the element with this index, counted from the matrix's first element.
  const std::byte* At(const void* matrix, int64_t element) const {
    return static_cast<const std::byte*>(matrix) + bytes(element);
  }
};

float ValueAt(const void* matrix, const FakeLayout& layout, int64_t element);
// Rounds the number to the layout's type, and writes it to `to`.
void StoreValue(std::byte* to, const FakeLayout& layout, float value);

}  // namespace tfjob::device::cuda
