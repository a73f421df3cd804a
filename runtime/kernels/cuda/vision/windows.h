// Maps elements of images to the windows that cover them, and vice versa. Only kernels include this
// header.
#pragma once

#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/vision/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// A pixel of an image or of the output, and one of its channels.
struct Pixel {
  uint32_t image, row, col, channel;
};

// Returns the pixel and the channel of an element, which is counted in dense order.
TFJOB_DEVICE Pixel PixelOf(uint32_t element, uint32_t rows, uint32_t cols, uint32_t channels) {
  const uint32_t pixel = element / channels, line = pixel / cols, image = line / rows;
  return {image, line - image * rows, pixel - line * cols, element - pixel * channels};
}

// Returns the index of a pixel among the pixels of all images.
TFJOB_DEVICE int64_t NumberOf(uint32_t image, uint32_t row, uint32_t col, uint32_t rows,
                              uint32_t cols) {
  return (static_cast<int64_t>(image) * rows + row) * cols + col;
}

// Returns the input that element k of a window covers. If the element covers padding, the result is
// at least span.inputs.
TFJOB_DEVICE uint32_t InputOf(const WindowSpan& span, uint32_t window, uint32_t k) {
  return window * span.stride + k * span.dilation - span.before;
}

// Returns the window whose element k covers the input. If there is no such window, the result is at
// least span.windows.
TFJOB_DEVICE uint32_t WindowOf(const WindowSpan& span, uint32_t input, uint32_t k) {
  // The position of the window's first element, counted from the start of the padding. A negative
  // position wraps around to a huge number.
  const uint32_t begin = input + span.before - k * span.dilation;
  const uint32_t window = begin / span.stride;
  return window * span.stride == begin ? window : span.windows;
}

// A range of numbers, [begin, end).
struct Range {
  uint32_t begin, end;
};

// Returns the inputs that a window without dilation covers.
TFJOB_DEVICE Range InputsOf(const WindowSpan& span, uint32_t window) {
  const uint32_t begin = window * span.stride, end = begin + span.size;  // with the padding
  const uint32_t last = span.inputs + span.before;
  return {begin < span.before ? 0 : begin - span.before, (end < last ? end : last) - span.before};
}

// Returns the windows without dilation that cover an input.
TFJOB_DEVICE Range WindowsOf(const WindowSpan& span, uint32_t input) {
  const uint32_t at = input + span.before, after = at / span.stride + 1;
  return {at < span.size ? 0 : (at - span.size) / span.stride + 1,
          after < span.windows ? after : span.windows};
}

}  // namespace
}  // namespace tfjob::kernels::cuda
