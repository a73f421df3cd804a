// Declares the part of CUDA C++ that the kernels use, for a host compiler. Anything else does not
// compile, so kernels use only features that the emulator checks.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/kernels/cuda/emulator/emulator.h"

#define __shared__ static

struct alignas(16) float4 {
  float x, y, z, w;
};

#define threadIdx (::tfjob::kernels::cuda::state.current->index)
#define blockIdx (::tfjob::kernels::cuda::state.block_index)
#define blockDim (::tfjob::kernels::cuda::state.block)
#define gridDim (::tfjob::kernels::cuda::state.grid)

namespace tfjob::kernels::cuda {

template <typename T>
T Exchange(WarpOp op, unsigned mask, T value, int operand, int width, Site site) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = Collective(op, mask, operand, width, bits, site);
  T result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// Access 16 aligned bytes at once.
float4 Load(const float* from);
void Store(float* to, float4 value);

}  // namespace tfjob::kernels::cuda

#define TFJOB_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(TFJOB_SITE) {
  ::tfjob::kernels::cuda::Barrier({file, line});
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, TFJOB_SITE) {
  using namespace tfjob::kernels::cuda;
  return Exchange(WarpOp::kShuffle, mask, value, lane, width, {file, line});
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, TFJOB_SITE) {
  using namespace tfjob::kernels::cuda;
  return Exchange(WarpOp::kShuffleXor, mask, value, lane_mask, width, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, TFJOB_SITE) {
  using namespace tfjob::kernels::cuda;
  return static_cast<unsigned>(
      Collective(WarpOp::kBallot, mask, 0, 32, predicate != 0 ? 1 : 0, {file, line}));
}

inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
