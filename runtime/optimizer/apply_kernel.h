// Implements the graph's op ApplyOptimizer on a CPU. The complete table of kernels is
// kernels::CpuKernels().With(optimizer::CpuKernels()).
//
//   inputs      step (int64 scalar: updates before this one), gradient, variable,
//               slots in the order of Slots()
//   outputs     variable, slots: the same memory as the inputs (InPlace::kAlways)
//   attributes  ToAttributes(optimizer)
//
// Operands may have their own row strides. Supports float32 and float64.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::optimizer {

const kernels::KernelTable& CpuKernels();

}  // namespace tfjob::optimizer
