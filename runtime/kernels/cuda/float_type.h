// Declares how tensors on a GPU store floats. The rules in parameters.h apply.
#pragma once

#include <cstdint>

namespace tfjob::kernels::cuda {

// Kernels compute in float32.
enum class FloatType : int32_t { kFloat32, kBFloat16, kFloat16 };

}  // namespace tfjob::kernels::cuda
