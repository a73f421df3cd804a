// Checks requests for ops on images (convolutions, pooling, projective transformations) and for
// batch normalisation, and reads their attributes. The kernels for CPUs and for GPUs use these
// functions.
#pragma once

#include <cstdint>

#include "runtime/kernels/kernel.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cpu {

enum class ConvolutionPass {
  kForward,         // image, filter [, bias] → output
  kBackwardInput,   // filter, d output → d image
  kBackwardFilter,  // image, d output → d filter
};

// Describes a convolution. Image and output are [images,height,width,channels], and the filter is
// [height,width,channels / groups,outputs]. All operands have the same float type, and may have
// padded rows.
struct Convolution {
  Window window;
  Operand image, filter, output;
  // Operations that follow the convolution in the forward pass.
  bool bias = false;  // whether to add a bias [outputs], the third input
  bool relu = false;

  int64_t images() const { return image.shape.dim(0); }
  int64_t channels() const { return image.shape.dim(3); }
  int64_t outputs() const { return filter.shape.dim(3); }
  int64_t groups() const { return channels() / filter.shape.dim(2); }
};
// Reads the request for a Conv2D, FusedConv2D, Conv2DBackpropInput or Conv2DBackpropFilter.
StatusOr<Convolution> ConvolutionOf(ConvolutionPass pass, const KernelRequest& request);

// Describes a pooling op. The image and the pooled image are [images,height,width,channels]. Both
// have the same dtype, and may have padded rows.
struct Pooling {
  Window window;
  Operand image, pooled;

  int64_t images() const { return image.shape.dim(0); }
  int64_t channels() const { return image.shape.dim(3); }
};
// Read the requests for MaxPool or AvgPool, for MaxPoolGrad, and for AvgPoolGrad.
StatusOr<Pooling> PoolOf(const KernelRequest& request);
StatusOr<Pooling> MaxPoolGradOf(const KernelRequest& request);
StatusOr<Pooling> AvgPoolGradOf(const KernelRequest& request);

// Specifies how an image continues outside its borders (fill_mode in ops.md).
enum class Border : int32_t { kConstant, kReflect, kWrap, kNearest };

// Describes a transformation of images. The images before and after the transformation are
// [images,height,width,channels], and the transforms are [images,8]. All have the same dtype, and
// may have padded rows.
struct Transformation {
  Operand images, transformed, transforms;
  Border border = Border::kConstant;
  bool bilinear = true;
  double fill_value = 0;

  int64_t batch() const { return images.shape.dim(0); }
  int64_t height() const { return images.shape.dim(1); }
  int64_t width() const { return images.shape.dim(2); }
  int64_t channels() const { return images.shape.dim(3); }
};
// Read the requests for ImageProjectiveTransformV3 and for its gradient.
StatusOr<Transformation> TransformOf(const KernelRequest& request);
StatusOr<Transformation> TransformGradOf(const KernelRequest& request);

struct NormOptions {
  double epsilon = 0;
  bool relu = false;
  bool side = false;  // whether a value is added before the activation
};
// Read the requests for FusedBatchNorm and FusedBatchNormEx, and for their gradients.
StatusOr<NormOptions> BatchNormOf(const KernelRequest& request);
StatusOr<NormOptions> BatchNormGradOf(const KernelRequest& request);

}  // namespace tfjob::kernels::cpu
