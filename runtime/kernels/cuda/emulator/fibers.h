// Switches between the host's thread and the fibers in which the emulator runs CUDA threads.
#pragma once

#include <cstdint>

#include "runtime/kernels/cuda/emulator/emulator.h"

namespace tfjob::kernels::cuda {

// Makes stacks available for `count` fibers. No fiber may be running.
void ResetFibers(int count);
// Runs the thread's fiber until it waits or is done. A new fiber calls `main`, which must end with
// LeaveFiber and never return.
void ResumeFiber(Thread& thread, void (*main)());
// Returns to the caller of ResumeFiber.
void LeaveFiber();
// Must be the first call in `main`.
void EnterFiber();

// Returns the index of the stack that contains the address, or -1 if there is none.
int StackOf(uintptr_t address);

}  // namespace tfjob::kernels::cuda
