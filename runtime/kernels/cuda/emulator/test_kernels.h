// Declares the parameter of the kernels in test_kernels.cc.
#pragma once

#include <cstdint>

namespace tfjob::kernels::cuda {

inline constexpr int kTestThreads = 64;

struct TestParameter {
  float* x;
  float* y;
};

// The elements of the matrices [16,16] and [16,8] that TestProduct multiplies: small whole numbers.
inline float TestLeft(int row, int inner) {
  return static_cast<float>((row * 3 + inner * 5) % 11);
}
inline float TestRight(int inner, int col) {
  return static_cast<float>((inner * 7 + col * 2) % 13);
}

}  // namespace tfjob::kernels::cuda
