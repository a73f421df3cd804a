#include "runtime/model/layers/convolution.h"

#include <algorithm>

#include "runtime/graph/ops.h"
#include "runtime/model/layers/volume.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr IntegerRule kRequired = {.least = 1, .expected = kPositive.expected, .required = true};

// ---- arguments that the classes share

void WindowArgumentsOf(ArgumentVisitor& visitor, WindowArguments& window, size_t paddings) {
  visitor.PerAxis(
      "kernel_size", window.size,
      {.least = 1, .expected = "numbers of at least 1, one per axis", .required = true});
  visitor.PerAxis("strides", window.strides,
                  {.least = 1, .expected = "numbers of at least 1, one per axis"});
  visitor.Choice("padding", window.padding, std::span(kPaddings).first(paddings));
  visitor.Only("data_format", "\"channels_last\"");
}

void Dilations(ArgumentVisitor& visitor, WindowArguments& window, int64_t most) {
  visitor.PerAxis("dilation_rate", window.dilations,
                  {.least = 1,
                   .most = most,
                   .expected = most == 1 ? "1 (other dilations are not supported)"
                                         : "numbers of at least 1, one per axis"});
}

void ActivationAndBias(ArgumentVisitor& visitor, ActivationKind& activation, bool& use_bias,
                       Initializer& bias_initializer, WeightRules& bias_rules) {
  visitor.Activation("activation", activation, /*required=*/false);
  visitor.Flag("use_bias", use_bias);
  visitor.Initializer("bias_initializer", bias_initializer);
  visitor.Rules("bias", bias_rules);
}

// Lists the arguments of a kernel, for example depthwise_initializer, depthwise_regularizer and
// depthwise_constraint for the kernel "depthwise".
void Kernel(ArgumentVisitor& visitor, const std::string& kernel, Initializer& initializer,
            WeightRules& rules) {
  visitor.Initializer(kernel + "_initializer", initializer);
  visitor.Rules(kernel, rules);
}

// Lists the arguments that tf.keras 2 writes for layers with two kernels only because their classes
// are derived from Conv.
void RetiredKernel(ArgumentVisitor& visitor) {
  visitor.Retired("groups", "1");
  visitor.Ignored("kernel_initializer");
  visitor.Retired("kernel_regularizer", "null");
  visitor.Retired("kernel_constraint", "null");
}

// ---- shapes and variables

StatusOr<Shape> Convolved(const WindowArguments& arguments, const Shape& in, int64_t channels) {
  if (arguments.size.size() == 3) {
    ASSIGN_OR_RETURN(const VolumeWindow volume, VolumeWindowOver(arguments, in));
    RETURN_IF_ERROR(CheckDepth(volume));
    return volume.Count(in, channels);
  }
  ASSIGN_OR_RETURN(const Window window, arguments.Over(in));
  const Shape image = ImageOf(in);
  return ExampleShape(in.rank(), window.height.Count(image.dim(1)),
                      window.width.Count(image.dim(2)), channels);
}

// Returns the shape of a kernel: `size`, followed by `in` and `out`.
Shape KernelShape(const std::vector<int64_t>& size, int64_t in, int64_t out) {
  std::vector<int64_t> dims = size;
  dims.push_back(in);
  dims.push_back(out);
  return Shape(std::move(dims));
}

void AddBias(std::vector<VariableSpec>& variables, bool use_bias, int64_t channels,
             const Initializer& initializer, const WeightRules& rules) {
  if (use_bias)
    variables.push_back(
        {.name = "bias", .shape = {channels}, .initializer = initializer, .rules = rules});
}

// ---- graphs

// Reshapes the kernel to a filter [height,width,in,out].
Output Filter(Builder& b, Output kernel, int64_t in, int64_t out) {
  const Shape shape = b.shape(kernel);
  return graph::Reshape(b, kernel, {shape.rank() == 4 ? shape.dim(0) : 1, shape.dim(-3), in, out});
}

// Convolves each channel separately.
Output Depthwise(Builder& b, Output images, Output kernel, const Window& window) {
  const Shape shape = b.shape(kernel);
  const int64_t outputs = shape.dim(-2) * shape.dim(-1);
  return graph::Conv2D(b, images, Filter(b, kernel, 1, outputs), window);
}

// Adds the bias, if there is one, and applies the activation. The bias is the last variable.
Output Finish(const LayerCall& call, Output images, bool use_bias, ActivationKind activation) {
  if (!images.valid()) return images;
  Builder& b = call.b;
  if (use_bias) images = graph::BiasAdd(b, images, call.variables.back());
  images = Activate(b, activation, images);
  return call.ExampleShape().rank() > 3 ? images : Examples(b, images, call.ExampleShape().rank());
}

// Returns the window for a call. OutputShape must have accepted the inputs.
Window WindowOver(const LayerCall& call, const WindowArguments& arguments) {
  return *arguments.Over(call.ExampleShape());
}

}  // namespace

// ---- Conv

template <int kRank>
void Conv<kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.Integer("filters", filters, kRequired);
  WindowArgumentsOf(visitor, window, kRank == 1 ? 3 : 2);
  Dilations(visitor, window, kPositive.most);
  visitor.Integer("groups", groups, kPositive);
  ActivationAndBias(visitor, activation, use_bias, bias_initializer, bias_rules);
  Kernel(visitor, "kernel", kernel_initializer, kernel_rules);
}

template <int kRank>
StatusOr<Shape> Conv<kRank>::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectNotBoth(window));
  ASSIGN_OR_RETURN(Shape out, Convolved(window, in, filters));
  if (in.dim(-1) % groups == 0 && filters % groups == 0) return out;
  return InvalidArgument("expected numbers of channels and of filters that ", groups,
                         " groups divide, got ", in.dim(-1), " and ", filters);
}

template <int kRank>
std::vector<VariableSpec> Conv<kRank>::Variables(const Shape& in) const {
  std::vector<VariableSpec> variables;
  variables.push_back({.name = "kernel",
                       .shape = KernelShape(window.size, in.dim(-1) / groups, filters),
                       .initializer = kernel_initializer,
                       .rules = kernel_rules});
  AddBias(variables, use_bias, filters, bias_initializer, bias_rules);
  return variables;
}

template <int kRank>
Output Conv<kRank>::Apply(const LayerCall& call) const {
  if constexpr (kRank == 3) {
    const VolumeWindow over = *VolumeWindowOver(window, call.ExampleShape());
    return Finish(call, ConvolvedVolume(call.b, call.x(), call.variables[0], over, groups),
                  use_bias, activation);
  }
  const int64_t depth = call.ExampleShape().dim(-1) / groups;
  const Output filter = Filter(call.b, call.variables[0], depth, filters);
  return Finish(call, graph::Conv2D(call.b, Images(call), filter, WindowOver(call, window)),
                use_bias, activation);
}

// ---- DepthwiseConv

template <int kRank>
void DepthwiseConv<kRank>::Arguments(ArgumentVisitor& visitor) {
  WindowArgumentsOf(visitor, window, 2);
  Dilations(visitor, window, kPositive.most);
  visitor.Integer("depth_multiplier", depth_multiplier, kPositive);
  ActivationAndBias(visitor, activation, use_bias, bias_initializer, bias_rules);
  Kernel(visitor, "depthwise", depthwise_initializer, depthwise_rules);
  visitor.Retired("groups", "1");
}

template <int kRank>
StatusOr<Shape> DepthwiseConv<kRank>::OutputShape(const Shape& in) const {
  // The product below cannot overflow, because Convolved limits the number of channels.
  ASSIGN_OR_RETURN(Shape out, Convolved(window, in, 1));
  std::vector<int64_t> dims = out.dims();
  dims.back() = in.dim(-1) * depth_multiplier;
  return Shape(std::move(dims));
}

template <int kRank>
std::vector<VariableSpec> DepthwiseConv<kRank>::Variables(const Shape& in) const {
  std::vector<VariableSpec> variables;
  variables.push_back({.name = "kernel",
                       .shape = KernelShape(window.size, in.dim(-1), depth_multiplier),
                       .initializer = depthwise_initializer,
                       .rules = depthwise_rules});
  AddBias(variables, use_bias, in.dim(-1) * depth_multiplier, bias_initializer, bias_rules);
  return variables;
}

template <int kRank>
Output DepthwiseConv<kRank>::Apply(const LayerCall& call) const {
  const Output convolved =
      Depthwise(call.b, Images(call), call.variables[0], WindowOver(call, window));
  return Finish(call, convolved, use_bias, activation);
}

// ---- SeparableConv

template <int kRank>
void SeparableConv<kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.Integer("filters", filters, kRequired);
  WindowArgumentsOf(visitor, window, 2);
  Dilations(visitor, window, kPositive.most);
  visitor.Integer("depth_multiplier", depth_multiplier, kPositive);
  ActivationAndBias(visitor, activation, use_bias, bias_initializer, bias_rules);
  Kernel(visitor, "depthwise", depthwise_initializer, depthwise_rules);
  Kernel(visitor, "pointwise", pointwise_initializer, pointwise_rules);
  RetiredKernel(visitor);
}

template <int kRank>
StatusOr<Shape> SeparableConv<kRank>::OutputShape(const Shape& in) const {
  return Convolved(window, in, filters);
}

template <int kRank>
std::vector<VariableSpec> SeparableConv<kRank>::Variables(const Shape& in) const {
  const int64_t channels = in.dim(-1);
  const std::vector<int64_t> one(kRank, 1);
  std::vector<VariableSpec> variables;
  variables.push_back({.name = "depthwise_kernel",
                       .shape = KernelShape(window.size, channels, depth_multiplier),
                       .initializer = depthwise_initializer,
                       .rules = depthwise_rules});
  variables.push_back({.name = "pointwise_kernel",
                       .shape = KernelShape(one, channels * depth_multiplier, filters),
                       .initializer = pointwise_initializer,
                       .rules = pointwise_rules});
  AddBias(variables, use_bias, filters, bias_initializer, bias_rules);
  return variables;
}

template <int kRank>
Output SeparableConv<kRank>::Apply(const LayerCall& call) const {
  Builder& b = call.b;
  const Output depthwise = Depthwise(b, Images(call), call.variables[0], WindowOver(call, window));
  const int64_t channels = call.ExampleShape().dim(-1) * depth_multiplier;
  const Output filter = Filter(b, call.variables[1], channels, filters);
  return Finish(call, graph::Conv2D(b, depthwise, filter, {}), use_bias, activation);
}

// ---- ConvTranspose

namespace {

template <int kRank>
int64_t OutputPadding(const ConvTranspose<kRank>& layer, size_t axis) {
  return layer.output_padding[layer.output_padding.size() == 1 ? 0 : axis];
}

// Returns the shape of the image whose convolution would have the shape `in`. Follows Keras' rules
// for the paddings kValid and kSame (keras/src/backend/common/backend_utils.py,
// compute_conv_transpose_output_shape).
template <int kRank>
Shape Enlarged(const ConvTranspose<kRank>& layer, const Shape& in) {
  std::vector<int64_t> dims = in.dims();
  for (size_t i = 0; i < kRank; ++i) {
    const int64_t size = layer.window.size[i], stride = layer.window.strides[i];
    const bool valid = layer.window.padding == PaddingKind::kValid;
    if (layer.output_padding.empty()) {
      dims[i] = dims[i] * stride + (valid ? std::max<int64_t>(size - stride, 0) : 0);
    } else {
      dims[i] = (dims[i] - 1) * stride + (valid ? size : size % 2) + OutputPadding(layer, i);
    }
  }
  dims.back() = layer.filters;
  return Shape(std::move(dims));
}

// Checks output_padding before the shape of the output is known.
template <int kRank>
Status CheckOutputPadding(const ConvTranspose<kRank>& layer) {
  if (layer.output_padding.size() > 1 && layer.output_padding.size() != kRank) {
    return InvalidArgument("output_padding: expected one number, or ", kRank,
                           ", one per axis, got ", layer.output_padding.size());
  }
  for (size_t i = 0; i < kRank && !layer.output_padding.empty(); ++i) {
    const int64_t padding = OutputPadding(layer, i), stride = layer.window.strides[i];
    if (padding < 0 || padding >= stride) {
      return InvalidArgument("output_padding: expected numbers from 0 to the stride minus 1, got ",
                             padding, " with the stride ", stride);
    }
  }
  return OkStatus();
}

// Returns InvalidArgument unless the convolution of `out` has the size of `in`. With an even kernel
// and padding: same, the output may be too short.
template <int kRank>
Status CheckConvolved(const ConvTranspose<kRank>& layer, const Shape& in, const Shape& out) {
  ASSIGN_OR_RETURN(const Shape convolved, Convolved(layer.window, out, in.dim(-1)));
  if (convolved == in) return OkStatus();
  return InvalidArgument("output_padding: expected an output whose convolution has the shape ",
                         in.ToString(), " of the input, but the convolution of ", out.ToString(),
                         " has the shape ", convolved.ToString(),
                         "; with an even kernel_size and padding: same, use 1 or more");
}

}  // namespace

template <int kRank>
void ConvTranspose<kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.Integer("filters", filters, kRequired);
  WindowArgumentsOf(visitor, window, 2);
  visitor.OptionalAxes("output_padding", output_padding);
  Dilations(visitor, window, 1);
  ActivationAndBias(visitor, activation, use_bias, bias_initializer, bias_rules);
  Kernel(visitor, "kernel", kernel_initializer, kernel_rules);
  visitor.Retired("groups", "1");
}

template <int kRank>
StatusOr<Shape> ConvTranspose<kRank>::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectNotBoth(window));
  RETURN_IF_ERROR(Convolved(WindowArguments::Ones(kRank), in, in.dim(-1)).status());
  RETURN_IF_ERROR(CheckOutputPadding(*this));
  const Shape out = Enlarged(*this, in);
  RETURN_IF_ERROR(CheckConvolved(*this, in, out));
  return out;
}

template <int kRank>
std::vector<VariableSpec> ConvTranspose<kRank>::Variables(const Shape& in) const {
  std::vector<VariableSpec> variables;
  variables.push_back({.name = "kernel",
                       .shape = KernelShape(window.size, filters, in.dim(-1)),
                       .initializer = kernel_initializer,
                       .rules = kernel_rules});
  AddBias(variables, use_bias, filters, bias_initializer, bias_rules);
  return variables;
}

template <int kRank>
Output ConvTranspose<kRank>::Apply(const LayerCall& call) const {
  Builder& b = call.b;
  const Shape out = Enlarged(*this, call.ExampleShape());
  if constexpr (kRank == 3) {
    const Output volume =
        EnlargedVolume(b, call.x(), call.variables[0], *VolumeWindowOver(window, out), out);
    return Finish(call, volume, use_bias, activation);
  }
  Output filter = Filter(b, call.variables[0], filters, call.ExampleShape().dim(-1));
  const Shape image = ImageOf(out);
  const Shape images = {call.batch_size(), image.dim(1), image.dim(2), image.dim(3)};
  return Finish(call,
                graph::Conv2DBackpropInput(b, filter, Images(call), images, *window.Over(out)),
                use_bias, activation);
}

template struct Conv<1>;
template struct Conv<2>;
template struct Conv<3>;
template struct DepthwiseConv<1>;
template struct DepthwiseConv<2>;
template struct SeparableConv<1>;
template struct SeparableConv<2>;
template struct ConvTranspose<1>;
template struct ConvTranspose<2>;
template struct ConvTranspose<3>;

}  // namespace tfjob::model::layers
