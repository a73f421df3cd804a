// Prepares convolutions with one channel per group, which are computed without matrix products.
#pragma once

#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cuda/families.h"

namespace tfjob::kernels::cuda {

// The workspace of the gradient of the filter contains one sum per 256 windows, output and element
// of the window.
Prepared PrepareDepthwise(const Launcher& launcher, cpu::ConvolutionPass pass,
                          const cpu::Convolution& convolution);

}  // namespace tfjob::kernels::cuda
