// Describes a convolution to the kernels that compute it and its gradients.
#pragma once

#include "runtime/kernels/cpu/prepare.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cpu {

enum class ConvolutionPass {
  kForward,         // image, filter [, bias] → output
  kBackwardInput,   // filter, d output → d image
  kBackwardFilter,  // image, d output → d filter
};

// Image and output are [images,height,width,channels], the filter is
// [height,width,channels / groups,outputs]. All operands have the same float type and may have
// padded rows.
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

// Returns a kernel that computes one pass with oneDNN. The operands must be dense and float32.
// Splits the images into parts that depend only on the sizes, so the result does not depend on the
// number of threads.
Prepared PrepareOneDnnConvolution(ConvolutionPass pass, const Convolution& convolution);

}  // namespace tfjob::kernels::cpu
