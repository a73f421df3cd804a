// Declares the parameter of the kernels in test_kernels.cc.
#pragma once

#include <cstdint>

namespace tfjob::kernels::cuda {

inline constexpr int kTestThreads = 64;

struct TestParameter {
  float* x;
  float* y;
};

}  // namespace tfjob::kernels::cuda
