#include "runtime/kernels/cpu/image_requests.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/kernels/cpu/prepare.h"

namespace tfjob::kernels::cpu {
namespace {

Status CheckConvolution(const Convolution& c) {
  RETURN_IF_ERROR(CheckWindow(c.window, c.image.shape));
  for (const Operand* operand : {&c.filter, &c.output}) {
    if (operand->dtype != c.image.dtype) return InvalidArgument("the operands differ in dtype");
    if (operand->shape.rank() != 4)
      return InvalidArgument(operand->ToString(), " must have four axes");
  }
  const Shape& filter = c.filter.shape;
  if (filter.dim(2) < 1 || filter.dim(3) < 1 || c.channels() % filter.dim(2) != 0 ||
      c.outputs() % c.groups() != 0) {
    return InvalidArgument("the filter must split the channels and outputs into equal groups");
  }
  RETURN_IF_ERROR(ExpectShape(
      c.filter, {c.window.height.size, c.window.width.size, filter.dim(2), filter.dim(3)}));
  return ExpectShape(c.output, {c.images(), c.window.height.Count(c.image.shape.dim(1)),
                                c.window.width.Count(c.image.shape.dim(2)), c.outputs()});
}

// Determines which operations follow the convolution.
Status ReadFinish(const KernelRequest& request, Convolution& convolution) {
  const auto activation = request.attributes.Get<std::string>("activation", "");
  if (!activation.empty() && activation != "Relu")
    return Unimplemented("no activation \"", activation, "\" in a convolution");
  convolution.relu = activation == "Relu";
  if (!convolution.bias) return OkStatus();
  const Operand& output = request.outputs[0];
  RETURN_IF_ERROR(ExpectShape(request.inputs[2], {output.cols()}));
  if (request.inputs[2].dtype == output.dtype) return OkStatus();
  return InvalidArgument("the bias and the output differ in dtype");
}

StatusOr<Pooling> PoolingOf(const Attributes& attributes, const Operand& image,
                            const Operand& pooled) {
  ASSIGN_OR_RETURN(const Window window, WindowOf(attributes));
  RETURN_IF_ERROR(CheckWindow(window, image.shape));
  if (window.height.dilation != 1 || window.width.dilation != 1)
    return InvalidArgument("pooling windows have no dilation");
  if (image.dtype != pooled.dtype) return InvalidArgument("the operands differ in dtype");
  RETURN_IF_ERROR(
      ExpectShape(pooled, {image.shape.dim(0), window.height.Count(image.shape.dim(1)),
                           window.width.Count(image.shape.dim(2)), image.shape.dim(3)}));
  return Pooling{window, image, pooled};
}

// Checks that operands [first, last) have the dtype of x, and the shape [channels of x].
Status ExpectChannels(const std::vector<Operand>& operands, size_t first, size_t last,
                      const Operand& x) {
  for (size_t i = first; i < last; ++i) {
    RETURN_IF_ERROR(ExpectShape(operands[i], {x.cols()}));
    if (operands[i].dtype != x.dtype) return InvalidArgument("the operands differ in dtype");
  }
  return OkStatus();
}

Status ExpectLike(const std::vector<Operand>& operands, const std::vector<size_t>& which,
                  const Operand& x) {
  for (const size_t i : which) {
    if (i >= operands.size()) continue;
    RETURN_IF_ERROR(ExpectShape(operands[i], x.shape));
    if (operands[i].dtype != x.dtype) return InvalidArgument("the operands differ in dtype");
  }
  return OkStatus();
}

StatusOr<NormOptions> NormOptionsOf(const Attributes& attributes, bool side) {
  const auto activation = attributes.Get<std::string>("activation", "");
  if (!activation.empty() && activation != "Relu")
    return Unimplemented("no activation \"", activation, "\" in a batch normalisation");
  if (side && activation.empty()) return InvalidArgument("a side input needs an activation");
  return NormOptions{NumberOf(attributes, "epsilon", 1e-3), !activation.empty(), side};
}

StatusOr<Border> BorderOf(const std::string& mode) {
  if (mode == "CONSTANT") return Border::kConstant;
  if (mode == "REFLECT") return Border::kReflect;
  if (mode == "WRAP") return Border::kWrap;
  if (mode == "NEAREST") return Border::kNearest;
  return InvalidArgument("expected fill_mode CONSTANT, REFLECT, WRAP or NEAREST, got \"", mode,
                         "\"");
}

StatusOr<Transformation> TransformationOf(const KernelRequest& request, const Operand& images,
                                          const Operand& transformed) {
  const Attributes& attributes = request.attributes;
  ASSIGN_OR_RETURN(const Border border, BorderOf(attributes.Get("fill_mode", std::string())));
  const std::string interpolation = attributes.Get("interpolation", std::string());
  if (interpolation != "BILINEAR" && interpolation != "NEAREST") {
    return InvalidArgument("expected interpolation BILINEAR or NEAREST, got \"", interpolation,
                           "\"");
  }
  if (images.dtype != transformed.dtype || request.inputs[1].dtype != images.dtype)
    return InvalidArgument("the operands differ in dtype");
  if (images.shape.rank() != 4 || transformed.shape.rank() != 4)
    return InvalidArgument("expected images [images,height,width,channels]");
  RETURN_IF_ERROR(ExpectShape(request.inputs[1], {images.shape.dim(0), 8}));
  RETURN_IF_ERROR(ExpectShape(transformed, {images.shape.dim(0), transformed.shape.dim(1),
                                            transformed.shape.dim(2), images.shape.dim(3)}));
  return Transformation{.images = images,
                        .transformed = transformed,
                        .transforms = request.inputs[1],
                        .border = border,
                        .bilinear = interpolation == "BILINEAR",
                        .fill_value = NumberOf(attributes, "fill_value", 0)};
}

}  // namespace

StatusOr<Convolution> ConvolutionOf(ConvolutionPass pass, const KernelRequest& request) {
  Convolution c;
  const bool fused = request.op == "FusedConv2D";
  c.bias = fused && request.attributes.Get("bias", false);
  RETURN_IF_ERROR(ExpectOperands(request, c.bias ? 3 : 2, 1));
  ASSIGN_OR_RETURN(c.window, WindowOf(request.attributes));
  if (fused) RETURN_IF_ERROR(ReadFinish(request, c));
  const Operand &first = request.inputs[0], &second = request.inputs[1];
  const Operand& result = request.outputs[0];
  const bool forward = pass == ConvolutionPass::kForward;
  c.image = pass == ConvolutionPass::kBackwardInput ? result : first;
  c.filter = forward ? second : pass == ConvolutionPass::kBackwardInput ? first : result;
  c.output = forward ? result : second;
  RETURN_IF_ERROR(CheckConvolution(c));
  return c;
}

StatusOr<Pooling> PoolOf(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  return PoolingOf(request.attributes, request.inputs[0], request.outputs[0]);
}

StatusOr<Pooling> MaxPoolGradOf(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 3, 1));
  RETURN_IF_ERROR(ExpectShape(request.inputs[0], request.outputs[0].shape));
  RETURN_IF_ERROR(ExpectShape(request.inputs[2], request.inputs[1].shape));
  for (const Operand& input : request.inputs) {
    if (input.dtype != request.outputs[0].dtype)
      return InvalidArgument("the operands differ in dtype");
  }
  return PoolingOf(request.attributes, request.outputs[0], request.inputs[1]);
}

StatusOr<Pooling> AvgPoolGradOf(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  return PoolingOf(request.attributes, request.outputs[0], request.inputs[0]);
}

StatusOr<NormOptions> BatchNormOf(const KernelRequest& request) {
  const bool side = request.inputs.size() == 4;
  RETURN_IF_ERROR(ExpectOperands(request, side ? 4 : 3, 3));
  const Operand& x = request.inputs[0];
  if (x.shape.rank() < 2) return InvalidArgument("expected at least two axes");
  RETURN_IF_ERROR(ExpectChannels(request.inputs, 1, 3, x));
  RETURN_IF_ERROR(ExpectChannels(request.outputs, 1, 3, x));
  RETURN_IF_ERROR(ExpectLike(request.inputs, {3}, x));
  RETURN_IF_ERROR(ExpectLike(request.outputs, {0}, x));
  return NormOptionsOf(request.attributes, side);
}

StatusOr<NormOptions> BatchNormGradOf(const KernelRequest& request) {
  const size_t inputs = request.inputs.size();
  const bool side = inputs > 6;
  RETURN_IF_ERROR(ExpectOperands(request, std::clamp<size_t>(inputs, 6, 8), side ? 4 : 3));
  const Operand& x = request.inputs[1];
  if (x.shape.rank() < 2) return InvalidArgument("expected at least two axes");
  RETURN_IF_ERROR(ExpectChannels(request.inputs, 2, 6, x));
  RETURN_IF_ERROR(ExpectChannels(request.outputs, 1, 3, x));
  RETURN_IF_ERROR(ExpectLike(request.inputs, {0, 6, 7}, x));
  RETURN_IF_ERROR(ExpectLike(request.outputs, {0, 3}, x));
  return NormOptionsOf(request.attributes, side);
}

StatusOr<Transformation> TransformOf(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  return TransformationOf(request, request.inputs[0], request.outputs[0]);
}

StatusOr<Transformation> TransformGradOf(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  return TransformationOf(request, request.outputs[0], request.inputs[0]);
}

}  // namespace tfjob::kernels::cpu
