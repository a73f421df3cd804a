// Prepares convolutions with one channel per group (depthwise), which need no matrix products.
#pragma once

#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cuda/families.h"

namespace tfjob::kernels::cuda {

// Prepares a pass of a convolution. For the gradient of the filter, the workspace contains one sum
// for each combination of an element of the window, an output, and a part of 256 windows.
Prepared PrepareDepthwise(const Launcher& launcher, cpu::ConvolutionPass pass,
                          const cpu::Convolution& convolution);

}  // namespace tfjob::kernels::cuda
