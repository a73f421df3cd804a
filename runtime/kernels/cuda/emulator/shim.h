// Declares, for a host compiler, the part of CUDA C++ that the kernels use. Anything else does not
// compile, so kernels use only features that the emulator checks.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/tensor/half.h"

#define __shared__ static

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

#define threadIdx (::tfjob::kernels::cuda::state.current->index)
#define blockIdx (::tfjob::kernels::cuda::state.block_index)
#define blockDim (::tfjob::kernels::cuda::state.block)
#define gridDim (::tfjob::kernels::cuda::state.grid)

namespace tfjob::kernels::cuda {

// Access four elements at once, in 16 aligned bytes or, if their type is a half type, in 8.
float4 Load(const float* from);
float4 Load(const BFloat16* from);
float4 Load(const Float16* from);
void Store(float* to, float4 value);
void Store(BFloat16* to, float4 value);
void Store(Float16* to, float4 value);
// Access two elements at once, in 4 aligned bytes. The first is in the lower bits.
uint32_t LoadPair(const BFloat16* from);
uint32_t LoadPair(const Float16* from);
void StorePair(BFloat16* to, uint32_t pair);
void StorePair(Float16* to, uint32_t pair);

}  // namespace tfjob::kernels::cuda

// sin(π·x) and cos(π·x)
inline float sinpif(float x) {
  return static_cast<float>(std::sin(3.14159265358979323846 * x));
}
inline float cospif(float x) {
  return static_cast<float>(std::cos(3.14159265358979323846 * x));
}

#define TFJOB_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(TFJOB_SITE) {
  ::tfjob::kernels::cuda::Barrier({file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, TFJOB_SITE) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = ::tfjob::kernels::cuda::ShuffleXor(mask, lane_mask, bits, {file, line});
  T result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// Computes c += a·b together with the other lanes of the warp (matrix_units.h).
template <typename Half>
void MultiplyAccumulate(const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4], TFJOB_SITE) {
  const auto widen = [](uint16_t bits) { return static_cast<float>(Half::FromBits(bits)); };
  const ::tfjob::kernels::cuda::LaneProduct product{a, b, c, widen};
  ::tfjob::kernels::cuda::MultiplyByWarp(product, {file, line});
}
