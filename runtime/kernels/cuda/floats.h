// Reads and writes floats of any type that kernels support. Kernels compute in float32, and round
// the results when they write them. Only kernels include this header.
#pragma once

#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// Calls f(T{}), where T is the type, so that loops inside f need not test the type.
template <typename F>
TFJOB_DEVICE void WithFloats(FloatType type, F f) {
  if (type == FloatType::kFloat32) return f(float{});
  if (type == FloatType::kBFloat16) return f(BFloat16{});
  f(Float16{});
}

TFJOB_DEVICE float ReadFloat(const void* data, FloatType type, int64_t index) {
  if (type == FloatType::kFloat32) return static_cast<const float*>(data)[index];
  if (type == FloatType::kBFloat16)
    return static_cast<float>(static_cast<const BFloat16*>(data)[index]);
  return static_cast<float>(static_cast<const Float16*>(data)[index]);
}

TFJOB_DEVICE void WriteFloat(void* data, FloatType type, int64_t index, float value) {
  if (type == FloatType::kFloat32) {
    static_cast<float*>(data)[index] = value;
  } else if (type == FloatType::kBFloat16) {
    static_cast<BFloat16*>(data)[index] = BFloat16(value);
  } else {
    static_cast<Float16*>(data)[index] = Float16(value);
  }
}

// Read and write four elements at once. The address of the first is a multiple of their size.
TFJOB_DEVICE float4 ReadQuad(const void* data, FloatType type, int64_t index) {
  if (type == FloatType::kFloat32) return Load(static_cast<const float*>(data) + index);
  if (type == FloatType::kBFloat16) return Load(static_cast<const BFloat16*>(data) + index);
  return Load(static_cast<const Float16*>(data) + index);
}

TFJOB_DEVICE void WriteQuad(void* data, FloatType type, int64_t index, float4 value) {
  if (type == FloatType::kFloat32) return Store(static_cast<float*>(data) + index, value);
  if (type == FloatType::kBFloat16) return Store(static_cast<BFloat16*>(data) + index, value);
  Store(static_cast<Float16*>(data) + index, value);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
