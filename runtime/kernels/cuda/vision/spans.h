// Describes windows to the kernels in this folder, on the host.
#pragma once

#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cuda {

inline WindowSpan SpanOf(const WindowAxis& axis, int64_t inputs) {
  return {.size = static_cast<uint32_t>(axis.size),
          .stride = static_cast<uint32_t>(axis.stride),
          .dilation = static_cast<uint32_t>(axis.dilation),
          .before = static_cast<uint32_t>(axis.before),
          .inputs = static_cast<uint32_t>(inputs),
          .windows = static_cast<uint32_t>(axis.Count(inputs))};
}

// `image` is [images,height,width,channels].
inline WindowSpans SpansOf(const Window& window, const Shape& image) {
  return {SpanOf(window.height, image.dim(1)), SpanOf(window.width, image.dim(2))};
}

}  // namespace tfjob::kernels::cuda
