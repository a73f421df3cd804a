// Reads and writes single elements of operands that store floats of any type.
#pragma once

#include <cstdint>

#include "runtime/kernels/kernel.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cuda {

inline double NumberAt(const Operand& operand, const void* data, int64_t row, int64_t col) {
  const int64_t at = row * operand.row_stride + col;
  if (operand.dtype == DType::kBFloat16)
    return static_cast<double>(static_cast<float>(static_cast<const BFloat16*>(data)[at]));
  if (operand.dtype == DType::kFloat16)
    return static_cast<double>(static_cast<float>(static_cast<const Float16*>(data)[at]));
  return static_cast<double>(static_cast<const float*>(data)[at]);
}

inline void SetNumber(const Operand& operand, void* data, int64_t row, int64_t col, double value) {
  const int64_t at = row * operand.row_stride + col;
  const auto number = static_cast<float>(value);
  if (operand.dtype == DType::kBFloat16) {
    static_cast<BFloat16*>(data)[at] = BFloat16(number);
  } else if (operand.dtype == DType::kFloat16) {
    static_cast<Float16*>(data)[at] = Float16(number);
  } else {
    static_cast<float*>(data)[at] = number;
  }
}

}  // namespace tfjob::kernels::cuda
