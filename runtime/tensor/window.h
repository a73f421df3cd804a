// Describes the windows that a convolution or a pooling layer moves over the height and the width
// of an image.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"
#include "runtime/tensor/attributes.h"
#include "runtime/tensor/shape.h"

namespace tfjob {

// The windows along one axis. The window at position o of the output covers the inputs o·stride +
// k·dilation - before, for k from 0 to size - 1. Inputs outside the image are padding.
struct WindowAxis {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;  // padding before the first input
  int64_t after = 0;   // padding after the last input

  // Returns the distance from the first to the last input that a window covers, both included.
  int64_t extent() const { return (size - 1) * dilation + 1; }
  // Returns the number of windows over `inputs` inputs. Requires a window that CheckWindow accepts.
  int64_t Count(int64_t inputs) const { return (inputs + before + after - extent()) / stride + 1; }
  // Returns the axis with the padding of TensorFlow's "SAME", which yields ⌈inputs / stride⌉
  // windows. If the number of padding elements is odd, the extra element is at the end.
  WindowAxis Same(int64_t inputs) const;

  bool operator==(const WindowAxis&) const = default;
};

struct Window {
  WindowAxis height, width;

  bool operator==(const Window&) const = default;
};

// Returns InvalidArgument unless `image` is [images,height,width,channels] with at least one
// element, there is at least one window along each axis, and the padding is shorter than a window.
// Every window without dilation then covers at least one input. Also rejects values of 2^31 or
// more, so that positions cannot overflow.
Status CheckWindow(const Window& window, const Shape& image);

// Sets the attributes `height` and `width` to [size, stride, dilation, before, after].
void SetWindow(Attributes& attributes, const Window& window);
// Returns InvalidArgument if an attribute is missing or has the wrong length.
StatusOr<Window> WindowOf(const Attributes& attributes);

}  // namespace tfjob
