// Prepares the kernel for ApplyOptimizerRows (apply_kernel.h). Private to this package.
#pragma once

#include <memory>

#include "runtime/kernels/kernel.h"

namespace tfjob::optimizer {

// The position of the variable among the inputs.
inline constexpr int kVariableOfRows = 3;

StatusOr<std::unique_ptr<kernels::Kernel>> PrepareApplyRows(const kernels::KernelRequest& request);

}  // namespace tfjob::optimizer
