// Computes attention on the CPU, for comparisons with a GPU.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// Returns kernels for Attention and AttentionGrad that compute with plain loops in double
// precision.
KernelTable::Entries AttentionReference();

}  // namespace tfjob::kernels::cuda
