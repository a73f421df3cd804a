// Copies what windows see into a matrix, and back.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/windows.h"

namespace tfjob::kernels::cuda {

TFJOB_KERNEL(GatherWindows, GatherWindowsParameter, kWindowThreads) {
  const uint32_t element = blockIdx.x * kWindowThreads + threadIdx.x;
  if (element >= p.count) return;
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  // The column of the matrix: [group, ky, kx, channel].
  const uint32_t tap = element / p.depth, line = tap / width.size, group = line / height.size;
  const uint32_t kx = tap - line * width.size, ky = line - group * height.size;
  const uint32_t row = group / p.groups;
  const Pixel window = PixelOf(p.first + row, height.windows, width.windows, 1);
  const uint32_t y = InputOf(height, window.row, ky), x = InputOf(width, window.col, kx);
  float value = 0.0f;
  if (y < height.inputs && x < width.inputs) {
    const int64_t pixel = NumberOf(window.image, y, x, height.inputs, width.inputs);
    value = p.image[pixel * p.image_stride + (group - row * p.groups) * p.depth +
                    (element - tap * p.depth)];
  }
  p.matrix[element] = value;
}

// Each thread adds the values for one element of an image, in the order of the window's elements.
TFJOB_KERNEL(AddWindows, AddWindowsParameter, kWindowThreads) {
  const uint32_t element = blockIdx.x * kWindowThreads + threadIdx.x;
  if (element >= p.count) return;
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const Pixel at = PixelOf(element, height.inputs, width.inputs, p.groups * p.depth);
  const uint32_t image = p.first_image + at.image;
  const uint32_t group = at.channel / p.depth;
  const uint32_t taps = height.size * width.size;
  float sum = 0.0f;
  for (uint32_t ky = 0; ky < height.size; ++ky) {
    const uint32_t row = WindowOf(height, at.row, ky);
    if (row >= height.windows) continue;
    for (uint32_t kx = 0; kx < width.size; ++kx) {
      const uint32_t col = WindowOf(width, at.col, kx);
      if (col >= width.windows) continue;
      const int64_t window =
          NumberOf(image, row, col, height.windows, width.windows) - static_cast<int64_t>(p.first);
      if (window < 0 || window >= p.windows) continue;
      sum += p.matrix[((window * p.groups + group) * taps + ky * width.size + kx) * p.depth +
                      (at.channel - group * p.depth)];
    }
  }
  float* const to = p.image +
                    NumberOf(image, at.row, at.col, height.inputs, width.inputs) * p.image_stride +
                    at.channel;
  const bool begun = NumberOf(image, 0, 0, height.windows, width.windows) < p.first;
  *to = begun ? *to + sum : sum;
}

}  // namespace tfjob::kernels::cuda
