// Implements the graph's op ApplyOptimizer on a CPU. The complete table of kernels is
// kernels::CpuKernels().With(optimizer::CpuKernels()).
//
//   inputs      step (int64 scalar: the number of updates before this one), gradient, variable,
//               slots in the order of Slots()
//   outputs     variable, slots: in the memory of those inputs (InPlace::kAlways)
//   attributes  ToAttributes(optimizer)
//
// Each operand may have its own row stride. Supports float32 and float64.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::optimizer {

const kernels::KernelTable& CpuKernels();

}  // namespace tfjob::optimizer
