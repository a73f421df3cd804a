// Refuses tensors that contain NaN or infinity.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint32_t kNone = 0xffffffffu;

TFJOB_DEVICE uint32_t Lower(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// On the first thread of the block, returns the least of all threads' numbers. `partial` is in
// shared memory.
TFJOB_DEVICE uint32_t LeastOfBlock(uint32_t number, uint32_t* partial) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    number = Lower(number, __shfl_xor_sync(kAllLanes, number, offset));
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = number;
  __syncthreads();
  if (threadIdx.x != 0) return number;
  for (int warp = 1; warp < kNumberThreads / kWarp; ++warp) number = Lower(number, partial[warp]);
  return number;
}

}  // namespace

TFJOB_KERNEL(FindNotFinite, CheckNumbersParameter, kNumberThreads) {
  __shared__ uint32_t partial[kNumberThreads / kWarp];
  uint32_t first = kNone;
  for (int i = 0; i < kNumbersPerThread; ++i) {
    const uint32_t element =
        (blockIdx.x * kNumbersPerThread + static_cast<uint32_t>(i)) * kNumberThreads + threadIdx.x;
    if (element >= p.count) break;
    const uint32_t row = element / p.cols;
    const float value = ReadFloat(p.in, p.type, row * p.in_stride + (element - row * p.cols));
    if (value - value != 0.0f) first = Lower(first, element);
  }
  first = LeastOfBlock(first, partial);
  if (threadIdx.x == 0) p.found[blockIdx.x] = first;
}

TFJOB_KERNEL(RefuseNotFinite, CheckNumbersParameter, kNumberThreads) {
  __shared__ uint32_t partial[kNumberThreads / kWarp];
  uint32_t first = kNone;
  for (uint32_t i = threadIdx.x; i < p.blocks; i += kNumberThreads)
    first = Lower(first, p.found[i]);
  first = LeastOfBlock(first, partial);
  if (threadIdx.x != 0 || first == kNone || p.refusal[0] != 0) return;
  p.refusal[0] = p.number;
  p.refusal[1] = first;
  p.refusal[2] = 0;
}

}  // namespace tfjob::kernels::cuda
