// Computes softmax, and the cross-entropies with their gradients, one row per block. The row's
// maximum is subtracted first, so that no exponential overflows.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr int kWarps = kSoftmaxThreads / kWarp;

// A maximum m, and the sum of exp(x - m) over the elements x.
struct MaximumAndSum {
  float maximum, sum;
};

TFJOB_DEVICE MaximumAndSum Join(MaximumAndSum a, MaximumAndSum b) {
  // If a.maximum is NaN, keep it. Every comparison with NaN is false, so a NaN in b.maximum is
  // kept, too.
  const float maximum = a.maximum > b.maximum || a.maximum != a.maximum ? a.maximum : b.maximum;
  if (maximum == -INFINITY) return {maximum, a.sum + b.sum};
  return {maximum, a.sum * expf(a.maximum - maximum) + b.sum * expf(b.maximum - maximum)};
}

// On each thread of the block, returns the row's maximum and sum. `partial` is in shared memory.
template <typename T>
TFJOB_DEVICE MaximumAndSum JoinRow(const T* x, int cols, MaximumAndSum* partial) {
  MaximumAndSum mine{-INFINITY, 0.0f};
  for (int c = threadIdx.x; c < cols; c += kSoftmaxThreads)
    mine = Join(mine, {static_cast<float>(x[c]), 1.0f});
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

// On each thread of the block, returns the sum of all threads' values. `partial` is in shared
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

// Returns the address of the block's row.
template <typename T>
TFJOB_DEVICE const T* RowOf(const void* matrix, int64_t stride) {
  return static_cast<const T*>(matrix) + static_cast<int64_t>(blockIdx.x) * stride;
}
template <typename T>
TFJOB_DEVICE T* RowOf(void* matrix, int64_t stride) {
  return static_cast<T*>(matrix) + static_cast<int64_t>(blockIdx.x) * stride;
}

template <typename T>
TFJOB_DEVICE void SoftmaxOfRow(const SoftmaxParameter& p, MaximumAndSum* partial) {
  const T* const x = RowOf<T>(p.x, p.x_stride);
  T* const y = RowOf<T>(p.y, p.y_stride);
  const MaximumAndSum all = JoinRow(x, p.cols, partial);
  const float logarithm = logf(all.sum), inverse = 1.0f / all.sum;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) {
    const float shifted = static_cast<float>(x[c]) - all.maximum;
    y[c] = static_cast<T>(p.logarithm != 0 ? shifted - logarithm : expf(shifted) * inverse);
  }
}

template <typename T>
TFJOB_DEVICE void GradientOfRow(const SoftmaxGradParameter& p, float* partial) {
  const T* const y = RowOf<T>(p.y, p.y_stride);
  const T* const dy = RowOf<T>(p.dy, p.dy_stride);
  T* const dx = RowOf<T>(p.dx, p.dx_stride);
  float dot = 0.0f;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads)
    dot += static_cast<float>(y[c]) * static_cast<float>(dy[c]);
  const float total = BlockSum(dot, partial);
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads)
    dx[c] = static_cast<T>((static_cast<float>(dy[c]) - total) * static_cast<float>(y[c]));
}

template <typename T>
TFJOB_DEVICE void SparseOfRow(const SparseCrossEntropyParameter& p, MaximumAndSum* partial) {
  const T* const x = RowOf<T>(p.logits, p.logits_stride);
  T* const backprop = RowOf<T>(p.backprop, p.backprop_stride);
  T* const loss = static_cast<T*>(p.loss) + blockIdx.x;
  const MaximumAndSum all = JoinRow(x, p.cols, partial);
  const int64_t label = LabelOf(p, blockIdx.x);
  const bool valid = label >= 0 && label < p.cols;
  const float inverse = 1.0f / all.sum;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) {
    const float logit = static_cast<float>(x[c]);  // read first, because `backprop` may be x
    if (c == label) *loss = static_cast<T>(logf(all.sum) - (logit - all.maximum));
    const float y = expf(logit - all.maximum) * inverse - (c == label ? 1.0f : 0.0f);
    backprop[c] = static_cast<T>(valid ? y : NAN);
  }
  if (threadIdx.x == 0 && !valid) *loss = static_cast<T>(NAN);
}

// Computes backprop = softmax(x) Σ label - label, and the loss Σ label (log Σ exp(x) - x).
// `partial` and `sums`, which has two elements per warp, are in shared memory.
template <typename T>
TFJOB_DEVICE void DenseOfRow(const DenseCrossEntropyParameter& p, MaximumAndSum* partial,
                             float* sums) {
  const T* const x = RowOf<T>(p.logits, p.logits_stride);
  const T* const labels = RowOf<T>(p.labels, p.labels_stride);
  T* const backprop = RowOf<T>(p.backprop, p.backprop_stride);
  const MaximumAndSum all = JoinRow(x, p.cols, partial);
  float weight = 0.0f, dot = 0.0f;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) {
    const float label = static_cast<float>(labels[c]);
    weight += label;
    dot += label * (static_cast<float>(x[c]) - all.maximum);
  }
  weight = BlockSum(weight, sums);
  dot = BlockSum(dot, sums + kWarps);
  if (threadIdx.x == 0)
    static_cast<T*>(p.loss)[blockIdx.x] = static_cast<T>(logf(all.sum) * weight - dot);
  const float scale = weight / all.sum;
  for (int c = threadIdx.x; c < p.cols; c += kSoftmaxThreads) {
    // Read the label first, because `backprop` may be `labels`.
    const float label = static_cast<float>(labels[c]);
    backprop[c] = static_cast<T>(expf(static_cast<float>(x[c]) - all.maximum) * scale - label);
  }
}

}  // namespace

TFJOB_KERNEL(Softmax, SoftmaxParameter, kSoftmaxThreads) {
  __shared__ MaximumAndSum partial[kWarps];
  WithFloats(p.type, [&p, at = partial](auto zero) { SoftmaxOfRow<decltype(zero)>(p, at); });
}

TFJOB_KERNEL(SoftmaxGrad, SoftmaxGradParameter, kSoftmaxThreads) {
  __shared__ float partial[kWarps];
  WithFloats(p.type, [&p, at = partial](auto zero) { GradientOfRow<decltype(zero)>(p, at); });
}

TFJOB_KERNEL(SparseCrossEntropy, SparseCrossEntropyParameter, kSoftmaxThreads) {
  __shared__ MaximumAndSum partial[kWarps];
  WithFloats(p.type, [&p, at = partial](auto zero) { SparseOfRow<decltype(zero)>(p, at); });
}

TFJOB_KERNEL(DenseCrossEntropy, DenseCrossEntropyParameter, kSoftmaxThreads) {
  __shared__ MaximumAndSum partial[kWarps];
  __shared__ float sums[2 * kWarps];
  WithFloats(p.type,
             [&p, at = partial, to = sums](auto zero) { DenseOfRow<decltype(zero)>(p, at, to); });
}

}  // namespace tfjob::kernels::cuda
