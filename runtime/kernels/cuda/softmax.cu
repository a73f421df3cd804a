// Computes softmax, and the cross-entropies with their gradients, one row per block. The row's
// maximum is subtracted first, so that no exponential overflows.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr int kWarps = kSoftmaxThreads / kWarp;

// A maximum m, and the sum of exp(x - m) over the elements x.
struct MaximumAndSum {
  float maximum, sum;
};

TFJOB_DEVICE MaximumAndSum Join(MaximumAndSum a, MaximumAndSum b) {
  // A NaN is kept, because every comparison with NaN is false.
  const float maximum = a.maximum > b.maximum || a.maximum != a.maximum ? a.maximum : b.maximum;
  if (maximum == -INFINITY) return {maximum, a.sum + b.sum};
  return {maximum, a.sum * expf(a.maximum - maximum) + b.sum * expf(b.maximum - maximum)};
}

// Returns the row's maximum and sum on each thread of the block. `partial` is in shared memory.
TFJOB_DEVICE MaximumAndSum JoinRow(const float* x, int cols, MaximumAndSum* partial) {
  MaximumAndSum mine{-INFINITY, 0.0f};
  for (int c = threadIdx.x; c < cols; c += kSoftmaxThreads) mine = Join(mine, {x[c], 1.0f});
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const MaximumAndSum other{__shfl_xor_sync(kAllLanes, mine.maximum, offset),
                              __shfl_xor_sync(kAllLanes, mine.sum, offset)};
    mine = Join(mine, other);
  }
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = mine;
  __syncthreads();
  MaximumAndSum all = partial[0];
  for (int warp = 1; warp < kWarps; ++warp) all = Join(all, partial[warp]);
  return all;
}

// Returns the sum of the threads' values on each thread of the block. `partial` is in shared
// memory.
TFJOB_DEVICE float BlockSum(float value, float* partial) {
  value = WarpSum(value);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  float total = partial[0];
  for (int warp = 1; warp < kWarps; ++warp) total += partial[warp];
  return total;
}

TFJOB_DEVICE int64_t LabelOf(const SparseCrossEntropyParameter& p, int64_t row) {
  if (p.label_bytes == 8) return static_cast<const int64_t*>(p.labels)[row];
  if (p.label_bytes == 4) return static_cast<const int32_t*>(p.labels)[row];
  return static_cast<const uint8_t*>(p.labels)[row];
}

}  // namespace

TFJOB_KERNEL(Softmax, SoftmaxParameter, kSoftmaxThreads) {
  __shared__ MaximumAndSum partial[kWarps];
  const float* const x = p.x + static_cast<int64_t>(blockIdx.x) * p.x_stride;
  float* const y = p.y + static_cast<int64_t>(blockIdx.x) * p.y_stride;
  const MaximumAndSum all = JoinRow(x, p.cols, partial);
  const float logarithm = logf(all.sum), inverse = 1.0f / all.sum;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) {
    const float shifted = x[c] - all.maximum;
    y[c] = p.logarithm != 0 ? shifted - logarithm : expf(shifted) * inverse;
  }
}

TFJOB_KERNEL(SoftmaxGrad, SoftmaxGradParameter, kSoftmaxThreads) {
  __shared__ float partial[kWarps];
  const float* const y = p.y + static_cast<int64_t>(blockIdx.x) * p.y_stride;
  const float* const dy = p.dy + static_cast<int64_t>(blockIdx.x) * p.dy_stride;
  float* const dx = p.dx + static_cast<int64_t>(blockIdx.x) * p.dx_stride;
  float dot = 0.0f;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) dot += y[c] * dy[c];
  const float total = BlockSum(dot, partial);
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) dx[c] = (dy[c] - total) * y[c];
}

TFJOB_KERNEL(SparseCrossEntropy, SparseCrossEntropyParameter, kSoftmaxThreads) {
  __shared__ MaximumAndSum partial[kWarps];
  const int64_t row = blockIdx.x;
  const float* const x = p.logits + row * p.logits_stride;
  float* const backprop = p.backprop + row * p.backprop_stride;
  const MaximumAndSum all = JoinRow(x, p.cols, partial);
  const int64_t label = LabelOf(p, row);
  const bool valid = label >= 0 && label < p.cols;
  const float inverse = 1.0f / all.sum;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) {
    const float logit = x[c];  // read first, because `backprop` may be x
    if (c == label) p.loss[row] = logf(all.sum) - (logit - all.maximum);
    const float y = expf(logit - all.maximum) * inverse - (c == label ? 1.0f : 0.0f);
    backprop[c] = valid ? y : NAN;
  }
  if (threadIdx.x == 0 && !valid) p.loss[row] = NAN;
}

// Computes backprop = softmax(x) Σ label - label, and the loss Σ label (log Σ exp(x) - x).
TFJOB_KERNEL(DenseCrossEntropy, DenseCrossEntropyParameter, kSoftmaxThreads) {
  __shared__ MaximumAndSum partial[kWarps];
  __shared__ float weights[kWarps];
  __shared__ float dots[kWarps];
  const int64_t row = blockIdx.x;
  const float* const x = p.logits + row * p.logits_stride;
  const float* const labels = p.labels + row * p.labels_stride;
  float* const backprop = p.backprop + row * p.backprop_stride;
  const MaximumAndSum all = JoinRow(x, p.cols, partial);
  float weight = 0.0f, dot = 0.0f;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) {
    weight += labels[c];
    dot += labels[c] * (x[c] - all.maximum);
  }
  weight = BlockSum(weight, weights);
  dot = BlockSum(dot, dots);
  if (threadIdx.x == 0) p.loss[row] = logf(all.sum) * weight - dot;
  const float scale = weight / all.sum;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) {
    const float label = labels[c];  // read first, because `backprop` may be `labels`
    backprop[c] = expf(x[c] - all.maximum) * scale - label;
  }
}

}  // namespace tfjob::kernels::cuda
