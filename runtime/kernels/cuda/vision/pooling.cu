// Pools images, and computes the gradients. Pooling windows have no dilation.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/windows.h"

namespace tfjob::kernels::cuda {
namespace {

// The inputs that a window covers, for one element of the output.
struct Seen {
  Range rows, cols;
  const float* plane;  // the element's channel in the first pixel of the image
  int64_t to;          // where the element is stored
};

TFJOB_DEVICE Seen SeenBy(const PoolParameter& p, uint32_t element) {
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const Pixel at = PixelOf(element, height.windows, width.windows, p.channels);
  return {
      InputsOf(height, at.row), InputsOf(width, at.col),
      p.image + NumberOf(at.image, 0, 0, height.inputs, width.inputs) * p.image_stride + at.channel,
      NumberOf(at.image, at.row, at.col, height.windows, width.windows) * p.pooled_stride +
          at.channel};
}

TFJOB_DEVICE uint32_t ElementOfThread() {
  return blockIdx.x * kWindowThreads + threadIdx.x;
}

}  // namespace

// If a window contains NaN, its maximum is NaN.
TFJOB_KERNEL(MaxPool, PoolParameter, kWindowThreads) {
  if (ElementOfThread() >= p.count) return;
  const Seen seen = SeenBy(p, ElementOfThread());
  const uint32_t line = p.spans.width.inputs;
  float largest = -INFINITY;
  for (uint32_t y = seen.rows.begin; y < seen.rows.end; ++y) {
    for (uint32_t x = seen.cols.begin; x < seen.cols.end; ++x) {
      const float value = seen.plane[static_cast<int64_t>(y * line + x) * p.image_stride];
      largest = value > largest || value != value ? value : largest;
    }
  }
  p.out[seen.to] = largest;
}

TFJOB_KERNEL(FindMaxima, PoolParameter, kWindowThreads) {
  if (ElementOfThread() >= p.count) return;
  const Seen seen = SeenBy(p, ElementOfThread());
  const uint32_t line = p.spans.width.inputs;
  const float maximum = p.pooled[seen.to];
  uint32_t found = kNoMaximum;
  for (uint32_t y = seen.rows.begin; y < seen.rows.end; ++y) {
    for (uint32_t x = seen.cols.begin; x < seen.cols.end; ++x) {
      const uint32_t at = y * line + x;
      if (found == kNoMaximum && seen.plane[static_cast<int64_t>(at) * p.image_stride] == maximum)
        found = at;
    }
  }
  p.found[ElementOfThread()] = found;
}

TFJOB_KERNEL(AvgPool, PoolParameter, kWindowThreads) {
  if (ElementOfThread() >= p.count) return;
  const Seen seen = SeenBy(p, ElementOfThread());
  const uint32_t line = p.spans.width.inputs;
  float sum = 0.0f;
  for (uint32_t y = seen.rows.begin; y < seen.rows.end; ++y) {
    for (uint32_t x = seen.cols.begin; x < seen.cols.end; ++x)
      sum += seen.plane[static_cast<int64_t>(y * line + x) * p.image_stride];
  }
  const uint32_t count = (seen.rows.end - seen.rows.begin) * (seen.cols.end - seen.cols.begin);
  p.out[seen.to] = sum * (1.0f / static_cast<float>(count));
}

// Adds, for each element of the image, the gradients of the windows whose maximum it is, in the
// order of the windows.
TFJOB_KERNEL(MaxPoolGrad, PoolGradParameter, kWindowThreads) {
  const uint32_t element = ElementOfThread();
  if (element >= p.count) return;
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const Pixel at = PixelOf(element, height.inputs, width.inputs, p.channels);
  const Range rows = WindowsOf(height, at.row), cols = WindowsOf(width, at.col);
  float sum = 0.0f;
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    for (uint32_t col = cols.begin; col < cols.end; ++col) {
      const int64_t window = NumberOf(at.image, row, col, height.windows, width.windows);
      if (p.found[window * p.channels + at.channel] == at.row * width.inputs + at.col)
        sum += p.pooled[window * p.pooled_stride + at.channel];
    }
  }
  const int64_t pixel = NumberOf(at.image, at.row, at.col, height.inputs, width.inputs);
  p.image[pixel * p.image_stride + at.channel] = sum;
}

TFJOB_KERNEL(AvgPoolGrad, PoolGradParameter, kWindowThreads) {
  const uint32_t element = ElementOfThread();
  if (element >= p.count) return;
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const Pixel at = PixelOf(element, height.inputs, width.inputs, p.channels);
  const Range rows = WindowsOf(height, at.row), cols = WindowsOf(width, at.col);
  float sum = 0.0f;
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    const Range seen_rows = InputsOf(height, row);
    for (uint32_t col = cols.begin; col < cols.end; ++col) {
      const Range seen_cols = InputsOf(width, col);
      const uint32_t count = (seen_rows.end - seen_rows.begin) * (seen_cols.end - seen_cols.begin);
      const int64_t window = NumberOf(at.image, row, col, height.windows, width.windows);
      sum += p.pooled[window * p.pooled_stride + at.channel] * (1.0f / static_cast<float>(count));
    }
  }
  const int64_t pixel = NumberOf(at.image, at.row, at.col, height.inputs, width.inputs);
  p.image[pixel * p.image_stride + at.channel] = sum;
}

}  // namespace tfjob::kernels::cuda
