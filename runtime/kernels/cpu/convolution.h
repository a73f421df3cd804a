// Declares the kernels that compute a convolution and its gradients with oneDNN, or by skipping
// zeros.
#pragma once

#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cpu/prepare.h"

namespace tfjob::kernels::cpu {

// Returns how many parts the images are split into. The parts run in parallel. For a filter's
// gradient, each part has a partial sum.
int64_t PartsOf(ConvolutionPass pass, const Convolution& convolution);

// Returns a kernel that computes one pass with oneDNN. The operands must be dense and float32. The
// kernel splits the images into parts that depend only on the sizes, so the result does not depend
// on the number of threads.
Prepared PrepareOneDnnConvolution(ConvolutionPass pass, const Convolution& convolution);

// Returns whether the kernel of PrepareSparseConvolution supports the convolution, and is probably
// faster than oneDNN if at most this share of the elements of dy is not 0.
bool SparseIsFaster(const Convolution& convolution, double density);
// Returns a kernel that computes a gradient, kBackwardInput or kBackwardFilter, and skips the
// elements of dy that are 0. The operands must be dense and float32. As with oneDNN, the result
// does not depend on the number of threads.
Prepared PrepareSparseConvolution(ConvolutionPass pass, const Convolution& convolution);

}  // namespace tfjob::kernels::cpu
