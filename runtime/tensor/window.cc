#include "runtime/tensor/window.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace tfjob {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

Status CheckAxis(std::string_view name, const WindowAxis& axis, int64_t inputs) {
  const auto within = [](int64_t value, int64_t least) { return value >= least && value <= kMost; };
  if (!within(axis.size, 1) || !within(axis.stride, 1) || !within(axis.dilation, 1) ||
      !within(axis.before, 0) || !within(axis.after, 0)) {
    return InvalidArgument("expected a size, a stride and a dilation of 1 to ", kMost,
                           " along the ", name, ", and no negative padding, got size ", axis.size,
                           ", stride ", axis.stride, ", dilation ", axis.dilation, ", padding ",
                           axis.before, " and ", axis.after);
  }
  if (inputs + axis.before + axis.after > kMost) {
    return InvalidArgument("expected a ", name, " of at most ", kMost, " with padding, got ",
                           inputs, " + ", axis.before, " + ", axis.after);
  }
  if (axis.extent() > inputs + axis.before + axis.after) {
    return InvalidArgument("expected a ", name, " of at least ",
                           axis.extent() - axis.before - axis.after, " for a window of ",
                           axis.extent(), ", got ", inputs);
  }
  if (axis.before < axis.extent() && axis.after < axis.extent()) return OkStatus();
  return InvalidArgument("expected less padding than the ", axis.extent(),
                         " elements of a window along the ", name, ", got ", axis.before, " and ",
                         axis.after);
}

std::vector<int64_t> Numbers(const WindowAxis& axis) {
  return {axis.size, axis.stride, axis.dilation, axis.before, axis.after};
}

StatusOr<WindowAxis> AxisOf(const Attributes& attributes, std::string_view name) {
  const auto* numbers = attributes.Find<std::vector<int64_t>>(name);
  if (numbers == nullptr || numbers->size() != 5) {
    return InvalidArgument("expected the attribute ", name,
                           ": [size, stride, dilation, before, after]");
  }
  const std::vector<int64_t>& n = *numbers;
  return WindowAxis{n[0], n[1], n[2], n[3], n[4]};
}

}  // namespace

WindowAxis WindowAxis::Same(int64_t inputs) const {
  const int64_t windows = (inputs + stride - 1) / stride;
  const int64_t padding = std::max<int64_t>(0, (windows - 1) * stride + extent() - inputs);
  WindowAxis padded = *this;
  padded.before = padding / 2;
  padded.after = padding - padded.before;
  return padded;
}

Status CheckWindow(const Window& window, const Shape& image) {
  const auto fits = [](int64_t dim) { return dim >= 1 && dim <= kMost; };
  if (image.rank() != 4 || !std::ranges::all_of(image.dims(), fits)) {
    return InvalidArgument("expected images [images,height,width,channels], got ",
                           image.ToString());
  }
  RETURN_IF_ERROR(CheckAxis("height", window.height, image.dim(1)));
  return CheckAxis("width", window.width, image.dim(2));
}

void SetWindow(Attributes& attributes, const Window& window) {
  attributes.Set("height", Numbers(window.height));
  attributes.Set("width", Numbers(window.width));
}

StatusOr<Window> WindowOf(const Attributes& attributes) {
  Window window;
  ASSIGN_OR_RETURN(window.height, AxisOf(attributes, "height"));
  ASSIGN_OR_RETURN(window.width, AxisOf(attributes, "width"));
  return window;
}

}  // namespace tfjob
