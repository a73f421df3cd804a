// Limits oneDNN to the calling thread. Debian's oneDNN is built with OpenMP, whose spinning
// barriers become very slow if other threads use the same cores. Kernels instead split their work
// into parts, and run the parts on the threads of their stream.
#pragma once

namespace tfjob::kernels::cpu {

// Makes all later calls of oneDNN on this thread use only this thread, regardless of
// OMP_NUM_THREADS. Must be called before each use of oneDNN; only the first call on a thread has an
// effect.
void KeepOneDnnOnThisThread();

}  // namespace tfjob::kernels::cpu
