#include "runtime/model/layers/padding.h"

#include <algorithm>

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

WindowAxis Padded(WindowAxis axis, PaddingKind padding, int64_t inputs) {
  if (padding == PaddingKind::kSame) return axis.Same(inputs);
  if (padding == PaddingKind::kCausal) axis.before = axis.extent() - 1;
  return axis;
}

}  // namespace

WindowArguments WindowArguments::Ones(int rank) {
  const std::vector<int64_t> ones(static_cast<size_t>(rank), 1);
  return {.size = ones, .strides = ones, .dilations = ones};
}

WindowArguments WindowArguments::Part(size_t first, size_t count) const {
  const auto part = [&](const std::vector<int64_t>& all) {
    if (all.empty()) return all;
    const auto begin = all.begin() + static_cast<int64_t>(first);
    return std::vector<int64_t>(begin, begin + static_cast<int64_t>(count));
  };
  return {part(size), part(strides), part(dilations), padding};
}

StatusOr<Window> WindowArguments::Over(const Shape& example) const {
  const size_t axes = size.size();
  if (example.rank() != static_cast<int>(axes) + 1 || example.CheckedElements().value_or(0) == 0) {
    return InvalidArgument("expected examples of shape ",
                           axes == 1 ? "[steps,channels]" : "[height,width,channels]", ", got ",
                           example.ToString());
  }
  const auto axis = [&](size_t i) {
    return Padded({size[i], strides[i], dilations.empty() ? 1 : dilations[i]}, padding,
                  example.dims()[i]);
  };
  Window window;
  if (axes == 2) window.height = axis(0);
  window.width = axis(axes - 1);
  RETURN_IF_ERROR(CheckWindow(window, ImageOf(example)));
  return window;
}

Status ExpectNotBoth(const WindowArguments& window) {
  const auto above_one = [](int64_t n) { return n > 1; };
  if (std::ranges::none_of(window.strides, above_one) ||
      std::ranges::none_of(window.dilations, above_one)) {
    return OkStatus();
  }
  return InvalidArgument("expected strides or a dilation_rate above 1, got both");
}

Shape ImageOf(const Shape& example) {
  std::vector<int64_t> dims = example.dims();
  dims.insert(dims.begin(), static_cast<size_t>(4 - example.rank()), 1);
  return Shape(std::move(dims));
}

graph::Output Images(const LayerCall& call) {
  const Shape& shape = call.b.shape(call.x());
  if (shape.rank() == 4) return call.x();
  return graph::Reshape(call.b, call.x(), {shape.dim(0), 1, shape.dim(1), shape.dim(2)});
}

graph::Output Examples(graph::Builder& b, graph::Output images, int rank) {
  if (rank == 3 || !images.valid()) return images;
  const Shape shape = b.shape(images);
  return graph::Reshape(b, images, {shape.dim(0), shape.dim(2), shape.dim(3)});
}

Shape ExampleShape(int rank, int64_t height, int64_t width, int64_t channels) {
  return rank == 3 ? Shape{height, width, channels} : Shape{width, channels};
}

}  // namespace tfjob::model::layers
