// Provides the reference kernels that the kernels for GPUs are compared with.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// Returns the kernels for CPUs, including ApplyOptimizer. An op that has a kernel only for GPUs is
// computed with the CPU kernels of several other ops.
const KernelTable& ReferenceKernels();

}  // namespace tfjob::kernels::cuda
