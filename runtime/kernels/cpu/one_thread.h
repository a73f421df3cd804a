// Limits oneDNN to the calling thread. Debian's oneDNN is built with OpenMP, whose spinning
// barriers become very slow when other threads use the same cores. Kernels split their work into
// parts instead, and run the parts on the threads of their stream.
#pragma once

namespace tfjob::kernels::cpu {

// Makes all later calls of oneDNN on this thread use only this thread, regardless of
// OMP_NUM_THREADS. Call it before each use of oneDNN; later calls on the same thread do nothing.
void KeepOneDnnOnThisThread();

}  // namespace tfjob::kernels::cpu
