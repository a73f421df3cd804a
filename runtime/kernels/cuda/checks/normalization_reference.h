// Computes layer normalization on the CPU, for comparisons with a GPU.
#pragma once

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// Returns kernels for LayerNormalization and LayerNormalizationGrad that compute with plain loops
// in double precision.
KernelTable::Entries NormalizationReference();

}  // namespace tfjob::kernels::cuda
