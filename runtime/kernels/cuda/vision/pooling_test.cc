// Compares pooling with that of the CPU, on random shapes.
#include <gtest/gtest.h>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"

namespace tfjob::kernels::cuda {
namespace {

TEST(Pooling, EqualsTheCpus) {
  for (uint64_t seed = 0; seed < 32; ++seed) CompareAll(PoolingCases(seed), seed);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
