// Computes convolutions with one channel per group, and their gradients.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/windows.h"

namespace tfjob::kernels::cuda {

TFJOB_KERNEL(Depthwise, DepthwiseParameter, kWindowThreads) {
  const uint32_t element = blockIdx.x * kWindowThreads + threadIdx.x;
  if (element >= p.count) return;
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const Pixel at = PixelOf(element, height.windows, width.windows, p.channels * p.multiplier);
  const uint32_t output = at.channel, channel = output / p.multiplier;
  float sum = 0.0f;
  for (uint32_t ky = 0; ky < height.size; ++ky) {
    const uint32_t y = InputOf(height, at.row, ky);
    if (y >= height.inputs) continue;
    for (uint32_t kx = 0; kx < width.size; ++kx) {
      const uint32_t x = InputOf(width, at.col, kx);
      if (x >= width.inputs) continue;
      const int64_t pixel = NumberOf(at.image, y, x, height.inputs, width.inputs);
      sum += p.image[pixel * p.image_stride + channel] *
             p.filter[(ky * width.size + kx) * p.filter_stride + output];
    }
  }
  if (p.bias != nullptr) sum += p.bias[output];
  if (p.relu != 0 && sum < 0.0f) sum = 0.0f;
  const int64_t window = NumberOf(at.image, at.row, at.col, height.windows, width.windows);
  p.result[window * p.output_stride + output] = sum;
}

TFJOB_KERNEL(DepthwiseInput, DepthwiseParameter, kWindowThreads) {
  const uint32_t element = blockIdx.x * kWindowThreads + threadIdx.x;
  if (element >= p.count) return;
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const Pixel at = PixelOf(element, height.inputs, width.inputs, p.channels);
  const uint32_t first = at.channel * p.multiplier;
  float sum = 0.0f;
  for (uint32_t ky = 0; ky < height.size; ++ky) {
    const uint32_t row = WindowOf(height, at.row, ky);
    if (row >= height.windows) continue;
    for (uint32_t kx = 0; kx < width.size; ++kx) {
      const uint32_t col = WindowOf(width, at.col, kx);
      if (col >= width.windows) continue;
      const int64_t window = NumberOf(at.image, row, col, height.windows, width.windows);
      const float* const dy = p.output + window * p.output_stride + first;
      const float* const filter = p.filter + (ky * width.size + kx) * p.filter_stride + first;
      for (uint32_t i = 0; i < p.multiplier; ++i) sum += dy[i] * filter[i];
    }
  }
  const int64_t pixel = NumberOf(at.image, at.row, at.col, height.inputs, width.inputs);
  p.result[pixel * p.image_stride + at.channel] = sum;
}

// The x axis of a block covers 32 outputs, and its y axis kDepthwiseWarps windows at a time.
TFJOB_KERNEL(DepthwiseFilter, DepthwiseFilterParameter, kWarp* kDepthwiseWarps) {
  __shared__ float products[kDepthwiseWarps][kWarp];
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const uint32_t tiles = (p.outputs + kWarp - 1) / kWarp;
  const uint32_t taps = height.size * width.size;
  const uint32_t rest = blockIdx.x / tiles, part = rest / taps, tap = rest - part * taps;
  const uint32_t output = (blockIdx.x - rest * tiles) * kWarp + threadIdx.x;
  const uint32_t begin = part * kDepthwiseWindows;
  const uint32_t end =
      begin + kDepthwiseWindows < p.windows ? begin + kDepthwiseWindows : p.windows;
  const uint32_t ky = tap / width.size, kx = tap - ky * width.size;
  float sum = 0.0f;
  for (uint32_t window = begin + threadIdx.y; window < end; window += kDepthwiseWarps) {
    const Pixel at = PixelOf(window, height.windows, width.windows, 1);
    const uint32_t y = InputOf(height, at.row, ky), x = InputOf(width, at.col, kx);
    if (output >= p.outputs || y >= height.inputs || x >= width.inputs) continue;
    const int64_t pixel = NumberOf(at.image, y, x, height.inputs, width.inputs);
    sum += p.image[pixel * p.image_stride + output / p.multiplier] *
           p.output[window * p.output_stride + output];
  }
  products[threadIdx.y][threadIdx.x] = sum;
  for (unsigned half = kDepthwiseWarps / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half)
      products[threadIdx.y][threadIdx.x] += products[threadIdx.y + half][threadIdx.x];
  }
  if (threadIdx.y == 0 && output < p.outputs)
    p.sums[static_cast<int64_t>(rest) * p.outputs + output] = products[0][threadIdx.x];
}

}  // namespace tfjob::kernels::cuda
