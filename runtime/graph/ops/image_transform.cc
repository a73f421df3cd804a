// Implements the projective transformation of images. Images have the shape
// [images,height,width,channels].
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

constexpr int64_t kTransformNumbers = 8;  // a0, a1, a2, b0, b1, b2, c0, c1
constexpr int64_t kMostPixels = int64_t{1} << 31;

// Checks that `transforms` has one row per image, and that all inputs have the same float type.
Status CheckTransforms(const std::vector<TensorType>& inputs, int64_t images,
                       const TensorType& transforms) {
  for (const TensorType& input : inputs) {
    if (!IsFloat(input.dtype)) return InvalidArgument("expected a float type");
    if (input.dtype != inputs[0].dtype)
      return InvalidArgument("expected inputs of one dtype; add a Cast");
  }
  const Shape expected = {images, kTransformNumbers};
  if (transforms.shape == expected) return OkStatus();
  return InvalidArgument("expected transforms of shape ", expected.ToString(), ", got ",
                         transforms.shape.ToString());
}

// Checks that each image has at least one pixel, and not so many pixels that positions overflow.
Status CheckImages(const Shape& images) {
  if (images.rank() != 4)
    return InvalidArgument("expected images [images,height,width,channels], got ",
                           images.ToString());
  const int64_t height = images.dim(1), width = images.dim(2);
  if (height >= 1 && width >= 1 && height < kMostPixels / width) return OkStatus();
  return InvalidArgument("expected images with 1 to 2^31 pixels, got ", images.ToString());
}

InferResult InferTransform(InferenceContext& context) {
  const Shape& images = context.inputs[0].shape;
  RETURN_IF_ERROR(CheckImages(images));
  RETURN_IF_ERROR(CheckTransforms(context.inputs, images.dim(0), context.inputs[1]));
  const Shape out = {images.dim(0), context.attributes.Get("height", int64_t{0}),
                     context.attributes.Get("width", int64_t{0}), images.dim(3)};
  RETURN_IF_ERROR(CheckImages(out));
  return std::vector{TensorType{context.inputs[0].dtype, out}};
}

InferResult InferTransformGrad(InferenceContext& context) {
  const Shape* const images = context.attributes.Find<Shape>("images");
  if (images == nullptr) return InvalidArgument("expected the attribute images, a shape");
  RETURN_IF_ERROR(CheckImages(*images));
  const Shape& dy = context.inputs[0].shape;
  RETURN_IF_ERROR(CheckImages(dy));
  if (dy.dim(0) != images->dim(0) || dy.dim(3) != images->dim(3)) {
    return InvalidArgument("expected a gradient for images of shape ", images->ToString(), ", got ",
                           dy.ToString());
  }
  RETURN_IF_ERROR(CheckTransforms(context.inputs, dy.dim(0), context.inputs[1]));
  return std::vector{TensorType{context.inputs[0].dtype, *images}};
}

// Returns the gradient of the images. The transforms have no gradient: they are treated as
// constants.
Gradient TransformGradient(GradientContext& c) {
  Attributes attributes = c.node.attributes;
  attributes.Set("images", c.b.shape(c.input(0)));
  return {c.b.Add("ImageProjectiveTransformV3Grad", {c.dy(), c.input(1)}, std::move(attributes)),
          Output()};
}

}  // namespace

std::vector<Op> ImageTransformOps() {
  return {
      {"ImageProjectiveTransformV3", 2, 2, InferTransform, TransformGradient},
      {"ImageProjectiveTransformV3Grad", 2, 2, InferTransformGrad, nullptr},
  };
}

Output ImageProjectiveTransform(Builder& b, Output images, Output transforms,
                                const ImageTransform& how) {
  return b.Add("ImageProjectiveTransformV3", {images, transforms},
               {{"height", how.height},
                {"width", how.width},
                {"interpolation", std::string(how.interpolation)},
                {"fill_mode", std::string(how.fill_mode)},
                {"fill_value", how.fill_value}});
}

}  // namespace tfjob::graph
