// Reduces the rows or the columns of a matrix to their sum, maximum or minimum. The order of a sum
// depends only on the shape.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// Returns the identity element of the operation.
TFJOB_DEVICE float StartOf(ReduceOp op) {
  if (op == ReduceOp::kSum) return 0.0f;
  return op == ReduceOp::kMax ? -INFINITY : INFINITY;
}

// If a value is NaN, so is the result.
TFJOB_DEVICE float Combine(ReduceOp op, float a, float b) {
  if (op == ReduceOp::kSum) return a + b;
  const bool first = op == ReduceOp::kMax ? a > b : a < b;
  return first || a != a ? a : b;
}

// Returns the result for the warp, on every lane.
TFJOB_DEVICE float CombineWarp(ReduceOp op, float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value = Combine(op, value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}

// Some elements of a tensor: `count` elements, starting with element `first`, that are `step`
// elements apart.
struct Elements {
  int64_t first, count, step;
};

TFJOB_DEVICE float CombineAll(ReduceOp op, const void* in, FloatType type, const Elements& at) {
  float sum = StartOf(op);
  WithFloats(type, [&](auto zero) {
    const auto* const from = static_cast<const decltype(zero)*>(in) + at.first;
    for (int64_t i = 0; i < at.count; ++i)
      sum = Combine(op, sum, static_cast<float>(from[i * at.step]));
  });
  return sum;
}

}  // namespace

// The x axis of a block covers 32 columns, and its y axis kSumWarps rows at a time. The blocks of
// one part are neighbours.
TFJOB_KERNEL(SumColumns, SumColumnsParameter, kWarp* kSumWarps) {
  __shared__ float sums[kSumWarps][kWarp];
  const uint32_t blocks_per_part = (static_cast<uint32_t>(p.cols) + kWarp - 1) / kWarp;
  const uint32_t part = blockIdx.x / blocks_per_part;
  const int64_t col =
      static_cast<int64_t>(blockIdx.x - part * blocks_per_part) * kWarp + threadIdx.x;
  const int64_t begin = static_cast<int64_t>(part) * kSumRows;
  const int64_t end = begin + kSumRows < p.rows ? begin + kSumRows : p.rows;
  const int64_t first = begin + threadIdx.y;
  const Elements mine{first * p.in_stride + col,
                      col < p.cols ? (end - first + kSumWarps - 1) / kSumWarps : 0,
                      kSumWarps * p.in_stride};
  sums[threadIdx.y][threadIdx.x] = CombineAll(p.op, p.in, p.in_type, mine);
  for (unsigned half = kSumWarps / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half)
      sums[threadIdx.y][threadIdx.x] =
          Combine(p.op, sums[threadIdx.y][threadIdx.x], sums[threadIdx.y + half][threadIdx.x]);
  }
  if (threadIdx.y != 0 || col >= p.cols) return;
  WriteFloat(p.out, p.out_type, static_cast<int64_t>(part) * p.cols + col,
             sums[0][threadIdx.x] * p.scale);
}

// The blocks of one row, of which there is one per part, are neighbours.
TFJOB_KERNEL(SumRows, SumRowsParameter, kSumThreads) {
  __shared__ float sums[kSumThreads / kWarp];
  const uint32_t parts = static_cast<uint32_t>(p.parts);
  const int64_t row = blockIdx.x / parts, part = blockIdx.x % parts;
  const int64_t begin = part * kSumColumns;
  const int64_t end = begin + kSumColumns < p.cols ? begin + kSumColumns : p.cols;
  const int64_t first = begin + threadIdx.x;
  const Elements mine{row * p.in_stride + first, (end - first + kSumThreads - 1) / kSumThreads,
                      kSumThreads};
  const float sum = CombineWarp(p.op, CombineAll(p.op, p.in, p.in_type, mine));
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float total = sums[0];
  for (int warp = 1; warp < kSumThreads / kWarp; ++warp) total = Combine(p.op, total, sums[warp]);
  WriteFloat(p.out, p.out_type, blockIdx.x, total * p.scale);
}

TFJOB_KERNEL(SumShortRows, SumRowsParameter, kSumThreads) {
  const uint32_t row = blockIdx.x * (kSumThreads / kWarp) + threadIdx.x / kWarp;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const Elements mine{row * p.in_stride + lane,
                      row < p.rows ? (p.cols - lane + kWarp - 1) / kWarp : 0, kWarp};
  const float sum = CombineWarp(p.op, CombineAll(p.op, p.in, p.in_type, mine));
  if (lane == 0 && row < p.rows) WriteFloat(p.out, p.out_type, row, sum * p.scale);
}

}  // namespace tfjob::kernels::cuda
