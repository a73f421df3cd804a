// Computes ops with operands of different float types on the CPU, for comparisons with a GPU.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// Prepares a kernel of `table`. Inputs of half types are converted to float32, unless output 0 has
// a half type.
StatusOr<std::unique_ptr<Kernel>> PrepareWidened(const KernelTable& table,
                                                 const KernelRequest& request);

// Prepares FusedElementwise. If it has the attribute dtype, computes one step after another in
// float32, with the CPU's kernels.
StatusOr<std::unique_ptr<Kernel>> PrepareProgramSteps(const KernelRequest& request);

}  // namespace tfjob::kernels::cuda
