// Lets kernels for float32 compute ops whose operands are bfloat16 or float16.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

// Returns the entries with kernels that also accept operands of half types. An op that has no such
// kernel of its own converts these operands to float32 in its workspace, runs the kernel for
// float32, and rounds the results, so each result is rounded once. The other operands stay as they
// are. As in every kernel, all float operands must have one type. The entries must contain Cast,
// with kernels of its own, which convert the operands. The kernels may be those of any device.
KernelTable::Entries WithHalfTypes(KernelTable::Entries entries);

}  // namespace tfjob::kernels::cpu
