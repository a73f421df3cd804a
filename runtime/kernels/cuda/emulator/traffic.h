// Counts the memory transactions of a kernel. The accesses of a warp to one sector of 32 bytes
// share a transaction. A warp's accesses to one bank of shared memory share a transaction only if
// they are to the same word (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory",
// "Shared Memory").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/emulator/shadow.h"

namespace tfjob::kernels::cuda::shadow {

// Counts an access. For each place in the code, the k-th accesses of all lanes of a warp form one
// request.
void CountAccess(uintptr_t address, unsigned bytes, bool shared, const void* pc, uint32_t thread);
// Ends the requests of all warps. Called after a block has finished or passed a barrier.
void EndRequests();

// Returns the source line of the call whose return address is `pc`, such as "update.cu:57", or "?"
// if it is unknown.
std::string LineOf(const void* pc);

}  // namespace tfjob::kernels::cuda::shadow
