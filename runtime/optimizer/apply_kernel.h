// Implements the ops ApplyOptimizer and ApplyOptimizerRows on a CPU. To get the complete table of
// kernels, use kernels::CpuKernels().With(optimizer::CpuKernels()).
//
//   inputs      step (int64 scalar: the number of steps before this one), gradient, variable,
//               slots in the order of Slots()
//   outputs     variable, slots: in the memory of those inputs (InPlace::kAlways)
//   attributes  ToAttributes(optimizer), part (part.h)
//
// ApplyOptimizerRows has two inputs in place of the gradient. `indices` (int64[n]) contains
// distinct indices in ascending order, possibly followed by -1 in all remaining elements. `values`
// ([n,d]) contains the rows of the gradient with these indices; its remaining rows are ignored. The
// variable is [rows,d]. The run fails if an index is too large.
//
// Each operand may have its own row stride. Supports float32 and float64.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::optimizer {

const kernels::KernelTable& CpuKernels();

}  // namespace tfjob::optimizer
