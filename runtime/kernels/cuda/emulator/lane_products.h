// Multiplies matrices whose elements are distributed over the lanes of a warp. Private to the
// emulator.
#pragma once

#include <span>

#include "runtime/kernels/cuda/emulator/emulator.h"

namespace tfjob::kernels::cuda {

// Computes the products of 32 lanes, all of which are waiting. The lanes hold the elements that
// NVIDIA's "PTX ISA" states for mma.m16n8k16 with 16-bit operands. Adds in float32, from the first
// element of a row to the last; the order in which a GPU adds is not documented.
void MultiplyLanes(std::span<Thread> warp);

}  // namespace tfjob::kernels::cuda
