#include "runtime/kernels/cuda/images.h"

namespace tfjob::kernels::cuda {

std::span<const std::span<const std::byte>> Images() {
  return {};
}

}  // namespace tfjob::kernels::cuda
