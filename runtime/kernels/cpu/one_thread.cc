#include "runtime/kernels/cpu/one_thread.h"

// Declared here because <omp.h> is only available with gcc. oneDNN uses gcc's OpenMP, regardless of
// the compiler that compiles this file.
extern "C" void omp_set_num_threads(int threads);

namespace tfjob::kernels::cpu {

void KeepOneDnnOnThisThread() {
  // OpenMP stores the number of threads separately for each calling thread.
  thread_local const bool set = (omp_set_num_threads(1), true);
  (void)set;
}

}  // namespace tfjob::kernels::cpu
