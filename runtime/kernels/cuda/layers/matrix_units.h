// Multiplies small matrices of half types with the GPU's matrix units. A warp computes c += a·b,
// where a is [16,16], b is [16,8] and c is [16,8] in float32. The elements are distributed over the
// lanes: with g = lane / 4 and t = lane % 4, a lane holds
//   a[g][2t..], a[g+8][2t..], a[g][2t+8..], a[g+8][2t+8..]   (four pairs of neighbours in a row)
//   b[2t..][g], b[2t+8..][g]                                 (two pairs of neighbours in a column)
//   c[g][2t], c[g][2t+1], c[g+8][2t], c[g+8][2t+1]
// A pair is a word, whose lower half is the first element. Only kernels include this header.
#pragma once

#include "runtime/kernels/cuda/device.h"

#ifdef __CUDACC__

// Computes c += a·b together with the other lanes of the warp.
template <typename Half>
TFJOB_DEVICE void MultiplyAccumulate(const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4]);
template <>
TFJOB_DEVICE void MultiplyAccumulate<tfjob::BFloat16>(const uint32_t (&a)[4],
                                                      const uint32_t (&b)[2], float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
TFJOB_DEVICE void MultiplyAccumulate<tfjob::Float16>(const uint32_t (&a)[4], const uint32_t (&b)[2],
                                                     float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

namespace tfjob::kernels::cuda {
namespace {

template <typename Half>
TFJOB_DEVICE uint32_t PairOf(float first, float second) {
  return static_cast<uint32_t>(Half(first).bits) | static_cast<uint32_t>(Half(second).bits) << 16;
}

template <typename Half>
TFJOB_DEVICE float2 WidenPair(uint32_t pair) {
  Half first, second;
  first.bits = static_cast<uint16_t>(pair);
  second.bits = static_cast<uint16_t>(pair >> 16);
  return {static_cast<float>(first), static_cast<float>(second)};
}

// Matrices in shared memory have rows of kDepth elements, which start kDepth + kPadding elements
// apart, so that the lanes of a warp access different banks.
constexpr int kPadding = 8;

// Returns a lane's elements of a 16x16 block of the matrix, as the operand a.
template <int kDepth, typename Half>
TFJOB_DEVICE void LoadLeft(const Half* matrix, int row, int col, uint32_t (&a)[4]) {
  const int lane = threadIdx.x % kWarp;
  const Half* const at = matrix + (row + lane / 4) * (kDepth + kPadding) + col + lane % 4 * 2;
  a[0] = LoadPair(at);
  a[1] = LoadPair(at + 8 * (kDepth + kPadding));
  a[2] = LoadPair(at + 8);
  a[3] = LoadPair(at + 8 * (kDepth + kPadding) + 8);
}

// Returns a lane's elements of an 8x16 block of the matrix, which is the transpose of the operand
// b.
template <int kDepth, typename Half>
TFJOB_DEVICE void LoadTransposed(const Half* matrix, int row, int col, uint32_t (&b)[2]) {
  const int lane = threadIdx.x % kWarp;
  const Half* const at = matrix + (row + lane / 4) * (kDepth + kPadding) + col + lane % 4 * 2;
  b[0] = LoadPair(at);
  b[1] = LoadPair(at + 8);
}

// Returns the element at (row, col) and the one below it, as a pair.
template <int kDepth, typename Half>
TFJOB_DEVICE uint32_t LoadColumnPair(const Half* matrix, int row, int col) {
  const Half* const at = matrix + row * (kDepth + kPadding) + (col & ~1);
  const uint32_t upper = LoadPair(at), lower = LoadPair(at + kDepth + kPadding);
  return (col & 1) == 0 ? (upper & 0xffffu) | lower << 16 : upper >> 16 | (lower & 0xffff0000u);
}

// Returns a lane's elements of a 16x8 block of the matrix, as the operand b.
template <int kDepth, typename Half>
TFJOB_DEVICE void LoadRight(const Half* matrix, int row, int col, uint32_t (&b)[2]) {
  const int lane = threadIdx.x % kWarp;
  b[0] = LoadColumnPair<kDepth>(matrix, row + lane % 4 * 2, col + lane / 4);
  b[1] = LoadColumnPair<kDepth>(matrix, row + lane % 4 * 2 + 8, col + lane / 4);
}

// Stores a lane's elements of a 16x8 block, each multiplied by the scale of its row: those of rows
// g and g + 8.
template <int kDepth, typename Half>
TFJOB_DEVICE void StoreBlock(Half* matrix, int row, int col, const float (&c)[4], float upper,
                             float lower) {
  const int lane = threadIdx.x % kWarp;
  Half* const at = matrix + (row + lane / 4) * (kDepth + kPadding) + col + lane % 4 * 2;
  StorePair(at, PairOf<Half>(c[0] * upper, c[1] * upper));
  StorePair(at + 8 * (kDepth + kPadding), PairOf<Half>(c[2] * lower, c[3] * lower));
}

}  // namespace
}  // namespace tfjob::kernels::cuda
