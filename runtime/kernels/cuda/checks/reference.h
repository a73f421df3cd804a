// Provides the kernels with which those for GPUs are compared.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// Returns the kernels for CPUs, including ApplyOptimizer. Ops that have kernels only for GPUs are
// computed by the kernels of several ops.
const KernelTable& ReferenceKernels();

}  // namespace tfjob::kernels::cuda
