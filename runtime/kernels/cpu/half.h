// Extends kernels for float32 to operands of type bfloat16 or float16.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

// Returns entries whose kernels also accept operands of half types. If an op has no kernel for half
// types, the new kernel converts these operands to float32 in the workspace, runs the kernel for
// float32, and rounds each result once. All other operands are passed on unchanged. As for every
// kernel, all float operands must have the same type. The entries must include Cast with kernels
// for half types, which perform the conversions. Works for the kernels of any device.
KernelTable::Entries WithHalfTypes(KernelTable::Entries entries);

}  // namespace tfjob::kernels::cpu
