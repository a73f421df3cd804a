#include "runtime/kernels/cpu/one_thread.h"

// Declared here because <omp.h> comes only with gcc. oneDNN uses gcc's OpenMP, whichever compiler
// compiles this file.
extern "C" void omp_set_num_threads(int threads);

namespace tfjob::kernels::cpu {

void KeepOneDnnOnThisThread() {
  // OpenMP stores a separate number of threads for each calling thread.
  thread_local const bool set = (omp_set_num_threads(1), true);
  (void)set;
}

}  // namespace tfjob::kernels::cpu
