// Compares the kernels of layer normalization with plain loops.
#include <gtest/gtest.h>

#include <cstdint>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::kernels::cuda {
namespace {

TEST(CudaLayerNormalization, MatchesPlainLoops) {
  for (uint64_t seed = 0; seed < 60; ++seed) CompareAll(LayerNormalizationCases(seed), seed);
}

TEST(CudaLayerNormalization, RefusesOperandsThatDoNotFit) {
  const auto prepares = [](DType gamma, const Shape& statistics) {
    const Operand x = Operand::Dense(DType::kBFloat16, {2, 3, 4});
    const Operand row = Operand::Dense(gamma, {4});
    return MakeTable(EmulatedGpu(0))
        .Prepare({"LayerNormalization",
                  {},
                  {x, row, row},
                  {x, Operand::Dense(DType::kFloat32, statistics)}})
        .ok();
  };
  EXPECT_TRUE(prepares(DType::kFloat32, {2, 6}));
  EXPECT_FALSE(prepares(DType::kBFloat16, {2, 6}));
  EXPECT_FALSE(prepares(DType::kFloat32, {2, 2, 3}));
}

}  // namespace
}  // namespace tfjob::kernels::cuda
