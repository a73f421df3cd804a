// Implements the graph's ops ApplyOptimizer and ApplyOptimizerRows on a CPU. The complete table of
// kernels is kernels::CpuKernels().With(optimizer::CpuKernels()).
//
//   inputs      step (int64 scalar: the number of steps before this one), gradient, variable,
//               slots in the order of Slots()
//   outputs     variable, slots: in the memory of those inputs (InPlace::kAlways)
//   attributes  ToAttributes(optimizer), part (part.h)
//
// ApplyOptimizerRows has two inputs instead of the gradient: indices (int64[n], distinct,
// ascending, and perhaps followed by -1) and values ([n,d]), the rows of the gradient with these
// indices. Further rows of `values` are ignored. The variable is [rows,d]. An index that is too
// large makes the run fail.
//
// Each operand may have its own row stride. Supports float32 and float64.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::optimizer {

const kernels::KernelTable& CpuKernels();

}  // namespace tfjob::optimizer
