// The graph's op ApplyOptimizer on a CPU: CpuKernels().With(optimizer::CpuKernels()) is the whole
// table.
//   inputs   step (int64 scalar: updates before this one), gradient, variable, slots as Slots()
//   orders them outputs  variable, slots: the same memory as the inputs (InPlace::kAlways)
//   attributes  ToAttributes(optimizer)
// Operands may have row strides of their own. float32 and float64.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::optimizer {

const kernels::KernelTable& CpuKernels();

}  // namespace tfjob::optimizer
