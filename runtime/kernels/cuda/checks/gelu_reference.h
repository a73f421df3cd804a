// Computes products with GELU on the CPU, for comparisons with a GPU.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// Returns kernels for MatMulGelu and MatMulGeluGrad that compute with plain loops in double
// precision.
KernelTable::Entries GeluReference();

}  // namespace tfjob::kernels::cuda
