// Copies the elements that windows cover to a matrix (im2col), and adds the elements of such a
// matrix to images (col2im).
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/windows.h"

namespace tfjob::kernels::cuda {
namespace {

// Returns the position in the images from which an element of the matrix is copied, or -1 if it is
// padding.
TFJOB_DEVICE int64_t SeenAt(const GatherWindowsParameter& p, uint32_t element) {
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  // The column of the matrix: [group, ky, kx, channel].
  const uint32_t tap = element / p.depth, line = tap / width.size, group = line / height.size;
  const uint32_t kx = tap - line * width.size, ky = line - group * height.size;
  const uint32_t row = group / p.groups;
  const Pixel window = PixelOf(p.first + row, height.windows, width.windows, 1);
  const uint32_t y = InputOf(height, window.row, ky), x = InputOf(width, window.col, kx);
  if (y >= height.inputs || x >= width.inputs) return -1;
  const int64_t pixel = NumberOf(window.image, y, x, height.inputs, width.inputs);
  return pixel * p.image_stride + (group - row * p.groups) * p.depth + (element - tap * p.depth);
}

// Copies an element, or writes 0 if it is padding.
template <typename T>
TFJOB_DEVICE void CopySeen(const GatherWindowsParameter& p, int64_t from, int64_t to) {
  static_cast<T*>(p.matrix)[to] = from < 0 ? T{0} : static_cast<const T*>(p.image)[from];
}

// The position of an element of the images, and whether the matrix is added to its present value.
struct Added {
  int64_t to;
  bool begun;
};

// Calls add(from) for each element of the matrix that contributes to an element of the images, in
// the order of the window's elements.
template <typename F>
TFJOB_DEVICE Added ForEachAdded(const AddWindowsParameter& p, uint32_t element, F add) {
  const WindowSpan &height = p.spans.height, &width = p.spans.width;
  const Pixel at = PixelOf(element, height.inputs, width.inputs, p.groups * p.depth);
  const uint32_t group = at.channel / p.depth, taps = height.size * width.size;
  const uint32_t elements = p.groups * taps * p.depth;  // that a window covers
  const uint32_t first_line = (p.first_image + at.image) * height.windows;
  const uint32_t from = group * (taps - 1) * p.depth + at.channel;
  const int64_t pixel =
      NumberOf(p.first_image + at.image, at.row, at.col, height.inputs, width.inputs);
  const Added added{pixel * p.image_stride + at.channel, first_line * width.windows < p.first};
  for (uint32_t ky = 0; ky < height.size; ++ky) {
    const uint32_t row = WindowOf(height, at.row, ky);
    if (row >= height.windows) continue;
    const uint32_t line = (first_line + row) * width.windows - p.first;
    for (uint32_t kx = 0; kx < width.size; ++kx) {
      const uint32_t col = WindowOf(width, at.col, kx);
      const uint32_t window = line + col;  // a huge number if it precedes the first window
      if (col >= width.windows || window >= p.windows) continue;
      add(p.matrix + (window * elements + (ky * width.size + kx) * p.depth + from));
    }
  }
  return added;
}

TFJOB_DEVICE float4 SumOf(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

TFJOB_DEVICE uint32_t ThreadOfWindows() {
  return blockIdx.x * kWindowThreads + threadIdx.x;
}

}  // namespace

TFJOB_KERNEL(GatherWindows, GatherWindowsParameter, kWindowThreads) {
  const uint32_t element = ThreadOfWindows();
  if (element >= p.count) return;
  const int64_t from = SeenAt(p, element);
  if (p.bytes == 2) return CopySeen<uint16_t>(p, from, element);
  CopySeen<float>(p, from, element);
}

TFJOB_KERNEL(GatherQuads, GatherWindowsParameter, kWindowThreads) {
  const uint32_t element = 4 * ThreadOfWindows();
  if (element >= p.count) return;
  const int64_t from = SeenAt(p, element);
  // Copy four elements of two bytes as one number of eight bytes. Both quotients are whole numbers.
  if (p.bytes == 2) return CopySeen<uint64_t>(p, from < 0 ? -1 : from / 4, element / 4);
  const float4 zero{0.0f, 0.0f, 0.0f, 0.0f};
  Store(static_cast<float*>(p.matrix) + element,
        from < 0 ? zero : Load(static_cast<const float*>(p.image) + from));
}

TFJOB_KERNEL(AddWindows, AddWindowsParameter, kWindowThreads) {
  const uint32_t element = ThreadOfWindows();
  if (element >= p.count) return;
  float sum = 0.0f;
  const Added added = ForEachAdded(p, element, [&sum](const float* from) { sum += *from; });
  if (added.begun) sum += ReadFloat(p.image, p.type, added.to);
  WriteFloat(p.image, p.type, added.to, sum);
}

TFJOB_KERNEL(AddQuads, AddWindowsParameter, kWindowThreads) {
  const uint32_t element = 4 * ThreadOfWindows();
  if (element >= p.count) return;
  float4 sum{0.0f, 0.0f, 0.0f, 0.0f};
  const Added added =
      ForEachAdded(p, element, [&sum](const float* from) { sum = SumOf(sum, Load(from)); });
  if (added.begun) sum = SumOf(ReadQuad(p.image, p.type, added.to), sum);
  WriteQuad(p.image, p.type, added.to, sum);
}

}  // namespace tfjob::kernels::cuda
