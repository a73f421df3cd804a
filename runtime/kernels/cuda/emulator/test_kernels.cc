// Defines kernels for emulator_test.cc: one correct kernel, and kernels with one mistake each.
#include "runtime/kernels/cuda/emulator/test_kernels.h"

#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/layers/matrix_units.h"

namespace tfjob::kernels::cuda {

// Reverses x through shared memory.
TFJOB_KERNEL(TestCorrect, TestParameter, kTestThreads) {
  __shared__ float reversed[kTestThreads];
  reversed[kTestThreads - 1 - threadIdx.x] = p.x[threadIdx.x];
  __syncthreads();
  p.y[threadIdx.x] = WarpSum(reversed[threadIdx.x]);
}

// Multiplies the matrices of TestLeft and TestRight. The lanes of warp 0 return c[0] + 2048 c[1] of
// their elements, and those of warp 1 return c[2] + 2048 c[3].
TFJOB_KERNEL(TestProduct, TestParameter, kTestThreads) {
  const int g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4 * 2;
  const auto left = [](int row, int inner) {
    return PairOf<Float16>(TestLeft(row, inner), TestLeft(row, inner + 1));
  };
  const auto right = [](int inner, int col) {
    return PairOf<Float16>(TestRight(inner, col), TestRight(inner + 1, col));
  };
  const uint32_t a[4] = {left(g, t), left(g + 8, t), left(g, t + 8), left(g + 8, t + 8)};
  const uint32_t b[2] = {right(t, g), right(t + 8, g)};
  float c[4] = {1.0f, 2.0f, 3.0f, 4.0f};
  MultiplyAccumulate<Float16>(a, b, c);
  const int first = static_cast<int>(threadIdx.x) / kWarp * 2;
  p.y[threadIdx.x] = c[first] + 2048.0f * c[first + 1];
}

TFJOB_KERNEL(TestProductOfHalfAWarp, TestParameter, kTestThreads) {
  const uint32_t a[4] = {0, 0, 0, 0}, b[2] = {0, 0};
  float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if (threadIdx.x < 48) MultiplyAccumulate<Float16>(a, b, c);
  p.y[threadIdx.x] = c[0];
}

TFJOB_KERNEL(TestWithoutBarrier, TestParameter, kTestThreads) {
  __shared__ float reversed[kTestThreads];
  reversed[kTestThreads - 1 - threadIdx.x] = p.x[threadIdx.x];
  p.y[threadIdx.x] = reversed[threadIdx.x];
}

TFJOB_KERNEL(TestPastTheEnd, TestParameter, kTestThreads) {
  p.y[threadIdx.x] = p.x[threadIdx.x + 1];
}

TFJOB_KERNEL(TestOutside, TestParameter, kTestThreads) {
  p.y[static_cast<int>(threadIdx.x) - kTestThreads] = p.x[threadIdx.x];
}

TFJOB_KERNEL(TestUninitialised, TestParameter, kTestThreads) {
  p.x[threadIdx.x] = p.y[threadIdx.x];
}

TFJOB_KERNEL(TestDivergentBarrier, TestParameter, kTestThreads) {
  if (threadIdx.x < 5) __syncthreads();
  p.y[threadIdx.x] = p.x[threadIdx.x];
}

TFJOB_KERNEL(TestHalfOfTheLanes, TestParameter, kTestThreads) {
  p.y[threadIdx.x] = __shfl_xor_sync(0xffffu, p.x[threadIdx.x], 1);
}

TFJOB_KERNEL(TestShuffleInACondition, TestParameter, kTestThreads) {
  float x = p.x[threadIdx.x];
  if (threadIdx.x < 40) x = WarpSum(x);
  p.y[threadIdx.x] = x;
}

TFJOB_KERNEL(TestRaceOfBlocks, TestParameter, kTestThreads) {
  p.y[threadIdx.x] = static_cast<float>(blockIdx.x);
}

TFJOB_KERNEL(TestReadBeforeWrite, TestParameter, kTestThreads) {
  const float next = p.x[(threadIdx.x + 1) % kTestThreads];
  p.x[threadIdx.x] = next;
}

TFJOB_KERNEL(TestUnaligned, TestParameter, kTestThreads) {
  if (threadIdx.x == 0) Store(p.y, Load(p.x + 1));
}

TFJOB_KERNEL(TestStrided, TestParameter, kTestThreads) {
  if (threadIdx.x < 8) p.y[threadIdx.x * 8] = 1.0f;
}

TFJOB_KERNEL(TestBankConflict, TestParameter, kTestThreads) {
  __shared__ float tile[32 * 32];
  if (threadIdx.x < 32) tile[threadIdx.x * 32] = p.x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) p.y[threadIdx.x] = tile[(threadIdx.x + 1) % 32 * 32];
}

// Each thread updates its own byte. The bytes of a word belong to threads of two blocks.
TFJOB_KERNEL(TestBytes, TestParameter, kTestThreads) {
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(p.x) + 2 * threadIdx.x + blockIdx.x;
  *bytes = static_cast<uint8_t>(*bytes + 1);
  *bytes = static_cast<uint8_t>(*bytes + 1);
}

TFJOB_KERNEL(TestSharedByte, TestParameter, kTestThreads) {
  reinterpret_cast<uint8_t*>(p.x)[threadIdx.x / 2] = 1;
}

// Thread 0 reads a word while thread 33 writes one of its bytes.
TFJOB_KERNEL(TestByteOfAWord, TestParameter, kTestThreads) {
  if (threadIdx.x == 0) p.y[1] = p.x[0];
  if (threadIdx.x == 33) reinterpret_cast<uint8_t*>(p.x)[2] = 1;
}

TFJOB_KERNEL(TestUninitialisedByte, TestParameter, kTestThreads) {
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(p.y);
  if (threadIdx.x == 0) bytes[1] = 5;
  if (threadIdx.x == 0) bytes[8] = bytes[2];
}

TFJOB_KERNEL(TestNothing, TestParameter, kTestThreads) {}

}  // namespace tfjob::kernels::cuda
