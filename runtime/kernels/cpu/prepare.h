// Declares helpers for a PrepareFunction (kernel.h): they check the operands of a request, and
// instantiate a template for a dtype.
#pragma once

#include <memory>
#include <utility>

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

using Prepared = StatusOr<std::unique_ptr<Kernel>>;

// The minimum work that justifies waking another thread, measured in elements of a cheap loop.
inline constexpr int64_t kGrain = 16384;

// Returns InvalidArgument unless the request has exactly these numbers of inputs and outputs.
Status ExpectOperands(const KernelRequest& request, size_t inputs, size_t outputs);
// Returns InvalidArgument unless inputs [first, last) and output 0 have the same shape and dtype.
Status ExpectAlike(const KernelRequest& request, size_t first, size_t last);
Status ExpectShape(const Operand& operand, const Shape& shape);
// Returns Unimplemented with a message that names the dtype.
Status NoKernelFor(DType dtype);
// Returns InvalidArgument unless the operand, a step or a seed, is an int64 scalar.
Status ExpectInt64Scalar(const Operand& operand);
// Returns the axes in the attribute `axes` in ascending order, each counted from 0. Returns all
// axes if the attribute is absent. Returns InvalidArgument if an axis is out of range or listed
// twice.
StatusOr<std::vector<int>> AxesOf(const Attributes& attributes, int rank);
// Returns the attribute `name`, which may be a double, an int or a bool, as a double. If it is
// absent, returns `fallback`.
double NumberOf(const Attributes& attributes, const char* name, double fallback);

template <typename T>
struct Type {
  using type = T;
};

// Return the Prepared that f(Type<T>()) returns, where T is the C++ type of `dtype`. ForFloat
// accepts float32 and float64; ForNumber also accepts int32 and int64; ForAny accepts every dtype
// except the half types (half.h). For any other dtype, they return NoKernelFor(dtype).
template <typename F>
Prepared ForFloat(DType dtype, F f) {
  if (dtype == DType::kFloat32) return f(Type<float>());
  if (dtype == DType::kFloat64) return f(Type<double>());
  return NoKernelFor(dtype);
}

template <typename F>
Prepared ForNumber(DType dtype, F f) {
  if (dtype == DType::kInt32) return f(Type<int32_t>());
  if (dtype == DType::kInt64) return f(Type<int64_t>());
  return ForFloat(dtype, f);
}

template <typename F>
Prepared ForAny(DType dtype, F f) {
  if (dtype == DType::kUInt8) return f(Type<uint8_t>());
  if (dtype == DType::kBool) return f(Type<bool>());
  return ForNumber(dtype, f);
}

// Returns f(Type<T>()), where T is an unsigned integer type of the element's size. Intended for
// kernels that only move elements.
template <typename F>
Prepared ForSize(DType dtype, F f) {
  switch (SizeOf(dtype)) {
    case 1:
      return f(Type<uint8_t>());
    case 2:
      return f(Type<uint16_t>());
    case 4:
      return f(Type<uint32_t>());
    default:
      return f(Type<uint64_t>());
  }
}

template <typename K, typename... Arguments>
Prepared Make(Arguments&&... arguments) {
  return std::unique_ptr<Kernel>(std::make_unique<K>(std::forward<Arguments>(arguments)...));
}

}  // namespace tfjob::kernels::cpu
