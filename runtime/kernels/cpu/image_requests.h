// Checks the requests of ops on images (convolutions, pooling, projective transformations) and of
// batch normalisation, and reads their attributes. These ops have kernels for CPUs and for GPUs.
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

// Image and output are [images,height,width,channels], and the filter is [height,width,channels /
// groups,outputs]. All operands have the same float type and may have padded rows.
struct Convolution {
  Window window;
  Operand image, filter, output;
  // Operations that follow the convolution in the forward pass.
  bool bias = false;  // adds a bias [outputs], the third input
  bool relu = false;

  int64_t images() const { return image.shape.dim(0); }
  int64_t channels() const { return image.shape.dim(3); }
  int64_t outputs() const { return filter.shape.dim(3); }
  int64_t groups() const { return channels() / filter.shape.dim(2); }
};
// Reads the request of a Conv2D, FusedConv2D, Conv2DBackpropInput or Conv2DBackpropFilter.
StatusOr<Convolution> ConvolutionOf(ConvolutionPass pass, const KernelRequest& request);

// The image and the pooled image are [images,height,width,channels]. They have the same dtype and
// may have padded rows.
struct Pooling {
  Window window;
  Operand image, pooled;

  int64_t images() const { return image.shape.dim(0); }
  int64_t channels() const { return image.shape.dim(3); }
};
// Read the requests of MaxPool and AvgPool, of MaxPoolGrad, and of AvgPoolGrad.
StatusOr<Pooling> PoolOf(const KernelRequest& request);
StatusOr<Pooling> MaxPoolGradOf(const KernelRequest& request);
StatusOr<Pooling> AvgPoolGradOf(const KernelRequest& request);

// How an image continues outside its borders (fill_mode in ops.md).
enum class Border : int32_t { kConstant, kReflect, kWrap, kNearest };

// The images before and after the transformation are [images,height,width,channels], and the
// transforms are [images,8]. They have the same dtype and may have padded rows.
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
// Read the requests of ImageProjectiveTransformV3 and of its gradient.
StatusOr<Transformation> TransformOf(const KernelRequest& request);
StatusOr<Transformation> TransformGradOf(const KernelRequest& request);

struct NormOptions {
  double epsilon = 0;
  bool relu = false;
  bool side = false;  // a value is added before the activation
};
// Read the requests of FusedBatchNorm and FusedBatchNormEx, and of their gradients.
StatusOr<NormOptions> BatchNormOf(const KernelRequest& request);
StatusOr<NormOptions> BatchNormGradOf(const KernelRequest& request);

}  // namespace tfjob::kernels::cpu
