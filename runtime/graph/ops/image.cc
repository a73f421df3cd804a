// Implements convolutions and pooling. Images have the shape [images,height,width,channels].
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"
#include "runtime/tensor/window.h"

namespace tfjob::graph {
namespace {

// ---- inference

// Returns the output shape [images,height,width,channels] of an op that applies `window` to
// `image`.
Shape Windowed(const Window& window, const Shape& image, int64_t channels) {
  return {image.dim(0), window.height.Count(image.dim(1)), window.width.Count(image.dim(2)),
          channels};
}

Status ExpectFloats(const std::vector<TensorType>& types) {
  for (const TensorType& type : types) {
    if (!IsFloat(type.dtype)) return InvalidArgument("expected a float type");
    if (type.dtype != types[0].dtype)
      return InvalidArgument("expected inputs of one dtype; add a Cast");
  }
  return OkStatus();
}

// Checks that `filter` has the shape [height,width,channels per group,outputs], and is compatible
// with `window` and `image`.
Status CheckFilter(const Window& window, const Shape& image, const Shape& filter) {
  RETURN_IF_ERROR(CheckWindow(window, image));
  if (filter.rank() != 4 || filter.dim(0) != window.height.size ||
      filter.dim(1) != window.width.size || filter.dim(2) < 1 || filter.dim(3) < 1) {
    return InvalidArgument("expected a filter [", window.height.size, ",", window.width.size,
                           ",channels,outputs], got ", filter.ToString());
  }
  const int64_t groups = image.dim(3) / filter.dim(2);
  if (groups * filter.dim(2) == image.dim(3) && filter.dim(3) % groups == 0) return OkStatus();
  return InvalidArgument("expected a filter whose channels (", filter.dim(2), ") divide the ",
                         image.dim(3), " channels of the image into groups, and outputs (",
                         filter.dim(3), ") that are a multiple of the groups");
}

// Returns the attribute `name`, which is a shape.
StatusOr<Shape> ShapeAttribute(const Attributes& attributes, std::string_view name) {
  if (const Shape* shape = attributes.Find<Shape>(name)) return *shape;
  return InvalidArgument("expected the attribute ", name, ", a shape");
}

Status ExpectShape(std::string_view what, const Shape& expected, const Shape& got) {
  if (got == expected) return OkStatus();
  return InvalidArgument("expected ", what, " of shape ", expected.ToString(), ", got ",
                         got.ToString());
}

InferResult InferConv2D(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloats(context.inputs));
  ASSIGN_OR_RETURN(Window window, WindowOf(context.attributes));
  const Shape &image = context.inputs[0].shape, &filter = context.inputs[1].shape;
  RETURN_IF_ERROR(CheckFilter(window, image, filter));
  return std::vector{TensorType{context.inputs[0].dtype, Windowed(window, image, filter.dim(3))}};
}

InferResult InferFusedConv2D(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferConv2D(context));
  if (context.attributes.Get("bias", false) != (context.inputs.size() == 3)) {
    return InvalidArgument("expected a third input if and only if the attribute bias is set");
  }
  const TensorType bias{types[0].dtype, {types[0].shape.dim(3)}};
  if (context.inputs.size() == 3 && context.inputs[2] != bias)
    return InvalidArgument("expected a bias ", bias.ToString());
  return types;
}

// Checks that `dy`, the second input, has the shape of the convolution of `image` with `filter`.
Status CheckConvolutionGradient(const InferenceContext& context, const Shape& image,
                                const Shape& filter) {
  RETURN_IF_ERROR(ExpectFloats(context.inputs));
  ASSIGN_OR_RETURN(const Window window, WindowOf(context.attributes));
  RETURN_IF_ERROR(CheckFilter(window, image, filter));
  return ExpectShape("a gradient", Windowed(window, image, filter.dim(3)), context.inputs[1].shape);
}

InferResult InferConv2DBackpropInput(InferenceContext& context) {
  ASSIGN_OR_RETURN(Shape image, ShapeAttribute(context.attributes, "image"));
  RETURN_IF_ERROR(CheckConvolutionGradient(context, image, context.inputs[0].shape));
  return std::vector{TensorType{context.inputs[0].dtype, std::move(image)}};
}

InferResult InferConv2DBackpropFilter(InferenceContext& context) {
  ASSIGN_OR_RETURN(Shape filter, ShapeAttribute(context.attributes, "filter"));
  RETURN_IF_ERROR(CheckConvolutionGradient(context, context.inputs[0].shape, filter));
  return std::vector{TensorType{context.inputs[0].dtype, std::move(filter)}};
}

// Reads the window from the attributes, and checks that it fits images of this shape and has no
// dilation.
StatusOr<Window> PoolingWindow(const Attributes& attributes, const Shape& image) {
  ASSIGN_OR_RETURN(Window window, WindowOf(attributes));
  RETURN_IF_ERROR(CheckWindow(window, image));
  if (window.height.dilation == 1 && window.width.dilation == 1) return window;
  return InvalidArgument("expected pooling windows without dilation");
}

InferResult InferPool(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloats(context.inputs));
  const Shape& image = context.inputs[0].shape;
  ASSIGN_OR_RETURN(Window window, PoolingWindow(context.attributes, image));
  return std::vector{TensorType{context.inputs[0].dtype, Windowed(window, image, image.dim(3))}};
}

InferResult InferMaxPoolGrad(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloats(context.inputs));
  const Shape& image = context.inputs[0].shape;
  ASSIGN_OR_RETURN(Window window, PoolingWindow(context.attributes, image));
  const Shape pooled = Windowed(window, image, image.dim(3));
  RETURN_IF_ERROR(ExpectShape("pooled images", pooled, context.inputs[1].shape));
  RETURN_IF_ERROR(ExpectShape("a gradient", pooled, context.inputs[2].shape));
  return std::vector{context.inputs[0]};
}

InferResult InferAvgPoolGrad(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloats(context.inputs));
  ASSIGN_OR_RETURN(Shape image, ShapeAttribute(context.attributes, "image"));
  ASSIGN_OR_RETURN(Window window, PoolingWindow(context.attributes, image));
  RETURN_IF_ERROR(
      ExpectShape("a gradient", Windowed(window, image, image.dim(3)), context.inputs[0].shape));
  return std::vector{TensorType{context.inputs[0].dtype, image}};
}

// ---- gradients

// Returns the window of the node, which inference has already checked.
Window WindowOfNode(const GradientContext& c) {
  return *WindowOf(c.node.attributes);
}

Gradient Conv2DGradient(GradientContext& c) {
  const Window window = WindowOfNode(c);
  const Output image = c.input(0), filter = c.input(1);
  // Append the filter's gradient first, so that it can be sent while other gradients are being
  // computed.
  const Output d_filter = Conv2DBackpropFilter(c.b, image, c.dy(), c.b.shape(filter), window);
  return {Conv2DBackpropInput(c.b, filter, c.dy(), c.b.shape(image), window), d_filter};
}

// The formulas follow from two facts: the op is linear in the filter f and in its second input z,
// and ⟨dy, op(f, z)⟩ = ⟨Conv2D(dy, f), z⟩.
Gradient Conv2DBackpropInputGradient(GradientContext& c) {
  const Window window = WindowOfNode(c);
  const Output filter = c.input(0), z = c.input(1);
  const Output d_filter = Conv2DBackpropFilter(c.b, c.dy(), z, c.b.shape(filter), window);
  return {d_filter, Conv2D(c.b, c.dy(), filter, window)};
}

Gradient MaxPoolGradient(GradientContext& c) {
  Attributes attributes = c.node.attributes;
  return {c.b.Add("MaxPoolGrad", {c.input(0), c.output(0), c.dy()}, std::move(attributes))};
}

Gradient AvgPoolGradient(GradientContext& c) {
  Attributes attributes = c.node.attributes;
  attributes.Set("image", c.b.shape(c.input(0)));
  return {c.b.Add("AvgPoolGrad", {c.dy()}, std::move(attributes))};
}

Output Windows(Builder& b, std::string_view op, std::vector<Output> inputs, const Window& window,
               Attributes attributes = {}) {
  SetWindow(attributes, window);
  return b.Add(op, std::move(inputs), std::move(attributes));
}

}  // namespace

std::vector<Op> ImageOps() {
  return {
      {"Conv2D", 2, 2, InferConv2D, Conv2DGradient},
      {"FusedConv2D", 2, 3, InferFusedConv2D, nullptr},
      {"Conv2DBackpropInput", 2, 2, InferConv2DBackpropInput, Conv2DBackpropInputGradient},
      {"Conv2DBackpropFilter", 2, 2, InferConv2DBackpropFilter, nullptr},
      {"MaxPool", 1, 1, InferPool, MaxPoolGradient},
      {"MaxPoolGrad", 3, 3, InferMaxPoolGrad, nullptr},
      {"AvgPool", 1, 1, InferPool, AvgPoolGradient},
      {"AvgPoolGrad", 1, 1, InferAvgPoolGrad, nullptr},
  };
}

Output Conv2D(Builder& b, Output image, Output filter, const Window& window) {
  return Windows(b, "Conv2D", {image, filter}, window);
}

Output Conv2DBackpropInput(Builder& b, Output filter, Output dy, Shape image,
                           const Window& window) {
  return Windows(b, "Conv2DBackpropInput", {filter, dy}, window, {{"image", std::move(image)}});
}

Output Conv2DBackpropFilter(Builder& b, Output image, Output dy, Shape filter,
                            const Window& window) {
  return Windows(b, "Conv2DBackpropFilter", {image, dy}, window, {{"filter", std::move(filter)}});
}

Output MaxPool(Builder& b, Output image, const Window& window) {
  return Windows(b, "MaxPool", {image}, window);
}

Output AvgPool(Builder& b, Output image, const Window& window) {
  return Windows(b, "AvgPool", {image}, window);
}

}  // namespace tfjob::graph
