// Pools images, and computes the gradients. Pooling windows have no dilation.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/windows.h"

namespace tfjob::kernels::cuda {
namespace {

// The inputs that the window of one output element covers.
struct Seen {
  Range rows, cols;
  int64_t plane;  // the position of the element's channel in the first pixel of the image
  int64_t to;     // the position of the element
};

TFJOB_DEVICE Seen SeenBy(const PoolParameter& p, uint32_t element) {
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const Pixel at = PixelOf(element, height.windows, width.windows, p.channels);
  return {InputsOf(height, at.row), InputsOf(width, at.col),
          NumberOf(at.image, 0, 0, height.inputs, width.inputs) * p.image_stride + at.channel,
          NumberOf(at.image, at.row, at.col, height.windows, width.windows) * p.pooled_stride +
              at.channel};
}

// Returns the value of a pixel of the image, in the channel of the output element.
TFJOB_DEVICE float InputAt(const PoolParameter& p, const Seen& seen, uint32_t pixel) {
  return ReadFloat(p.image, p.type, seen.plane + static_cast<int64_t>(pixel) * p.image_stride);
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
      const float value = InputAt(p, seen, y * line + x);
      largest = value > largest || value != value ? value : largest;
    }
  }
  WriteFloat(p.out, p.type, seen.to, largest);
}

TFJOB_KERNEL(FindMaxima, PoolParameter, kWindowThreads) {
  if (ElementOfThread() >= p.count) return;
  const Seen seen = SeenBy(p, ElementOfThread());
  const uint32_t line = p.spans.width.inputs;
  const float maximum = ReadFloat(p.pooled, p.type, seen.to);
  uint32_t found = kNoMaximum;
  for (uint32_t y = seen.rows.begin; y < seen.rows.end; ++y) {
    for (uint32_t x = seen.cols.begin; x < seen.cols.end; ++x) {
      const uint32_t at = y * line + x;
      if (found == kNoMaximum && InputAt(p, seen, at) == maximum) found = at;
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
      sum += InputAt(p, seen, y * line + x);
  }
  const uint32_t count = (seen.rows.end - seen.rows.begin) * (seen.cols.end - seen.cols.begin);
  WriteFloat(p.out, p.type, seen.to, sum * (1.0f / static_cast<float>(count)));
}

// For each element of the image, sums the gradients of those windows in which the element is the
// maximum, in the order of the windows.
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
        sum += ReadFloat(p.pooled, p.type, window * p.pooled_stride + at.channel);
    }
  }
  const int64_t pixel = NumberOf(at.image, at.row, at.col, height.inputs, width.inputs);
  WriteFloat(p.image, p.type, pixel * p.image_stride + at.channel, sum);
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
    // If unrolled, the loop would need local memory.
    TFJOB_NOT_UNROLLED
    for (uint32_t col = cols.begin; col < cols.end; ++col) {
      const Range seen_cols = InputsOf(width, col);
      const uint32_t count = (seen_rows.end - seen_rows.begin) * (seen_cols.end - seen_cols.begin);
      const int64_t window = NumberOf(at.image, row, col, height.windows, width.windows);
      sum += ReadFloat(p.pooled, p.type, window * p.pooled_stride + at.channel) *
             (1.0f / static_cast<float>(count));
    }
  }
  const int64_t pixel = NumberOf(at.image, at.row, at.col, height.inputs, width.inputs);
  WriteFloat(p.image, p.type, pixel * p.image_stride + at.channel, sum);
}

}  // namespace tfjob::kernels::cuda
