// Declares the kernels that compute a convolution and its gradients with oneDNN.
#pragma once

#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cpu/prepare.h"

namespace tfjob::kernels::cpu {

// Returns a kernel that computes one pass with oneDNN. The operands must be dense and float32. The
// kernel splits the images into parts that depend only on the sizes, so the result does not depend
// on the number of threads.
Prepared PrepareOneDnnConvolution(ConvolutionPass pass, const Convolution& convolution);

}  // namespace tfjob::kernels::cpu
