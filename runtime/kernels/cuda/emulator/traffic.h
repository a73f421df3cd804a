// Counts the memory transactions of a kernel: which accesses of a warp are to the same sectors of
// 32 bytes, or into the same banks of shared memory (CUDA C++ Best Practices Guide, "Coalesced
// Access to Global Memory", "Shared Memory").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/emulator/shadow.h"

namespace tfjob::kernels::cuda::shadow {

// Counts an access. The k-th accesses of a warp's lanes at one place are one request.
void CountAccess(uintptr_t address, unsigned bytes, bool shared, const void* pc, uint32_t thread);
// Ends the requests of all warps, because a block has ended or passed a barrier.
void EndRequests();

// Returns the source line of a place in the code, such as "update.cu:57"; "?" if it is unknown.
std::string LineOf(const void* pc);

}  // namespace tfjob::kernels::cuda::shadow
