// Compares projective transformations with those of the CPU, on random shapes.
#include <gtest/gtest.h>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"

namespace tfjob::kernels::cuda {
namespace {

TEST(ImageTransforms, EqualTheCpus) {
  for (uint64_t seed = 0; seed < 32; ++seed) CompareAll(ImageTransformCases(seed), seed);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
