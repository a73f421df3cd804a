#include "runtime/kernels/kernel.h"

namespace tfjob::kernels {

StatusOr<const KernelTable*> CudaKernels() {
  return Unimplemented(
      "this program was built without CUDA: use device CPU, or build with --config=cuda");
}

}  // namespace tfjob::kernels
