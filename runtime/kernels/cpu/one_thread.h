// Limits oneDNN to the calling thread. Debian's oneDNN uses OpenMP, whose spinning barriers are
// very slow if other threads use the same cores. Instead, kernels divide their work into parts, and
// run the parts on the threads of their stream.
#pragma once

namespace tfjob::kernels::cpu {

// Restricts all subsequent oneDNN calls on this thread to this thread, regardless of
// OMP_NUM_THREADS. Call this function before each use of oneDNN. Only the first call on a thread
// has an effect.
void KeepOneDnnOnThisThread();

}  // namespace tfjob::kernels::cpu
