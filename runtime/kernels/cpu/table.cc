#include "runtime/kernels/kernel.h"

namespace tfjob::kernels {

const KernelTable& CpuKernels() {
  static const KernelTable table("CPU", {});
  return table;
}

}  // namespace tfjob::kernels
