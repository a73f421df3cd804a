// Compares batch normalisation and its gradient with those of the CPU, on random shapes.
#include <gtest/gtest.h>

#include <string>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/vision_cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"

namespace tfjob::kernels::cuda {
namespace {

TEST(BatchNorm, EqualsTheCpus) {
  for (uint64_t seed = 0; seed < 16; ++seed) CompareAll(BatchNormCases(seed), seed);
}

// The numbers of rows cover one part plus a single row, several parts that are merged in one step,
// and parts that are merged in two steps.
TEST(BatchNorm, OfManyRowsEqualsTheCpus) {
  for (const int64_t rows : {257, 1000, 256 * 256 + 300}) {
    CompareAll(NormsOf({rows, 2}, -3, 3), 1);
    if (rows > 1000) continue;
    CompareAll(NormGradientsOf({rows, 2}), 1);
  }
}

TEST(BatchNorm, KeepsTheVarianceOfValuesFarFromZero) {
  Comparison norm = NormsOf({600, 3}, 998, 1002)[0];
  norm.tolerance = 5e-4;  // of y, whose terms are about 1,000
  Compare(norm, 1);
}

// Without rows, the mean is NaN.
TEST(BatchNorm, OfNoRowsEqualsTheCpus) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    CompareAll(NormsOf({0, 3}, -3, 3), seed);
    CompareAll(NormGradientsOf({0, 3}), seed);
  }
}

TEST(BatchNorm, IsRefusedIfOperandsDoNotFit) {
  const auto dense = [](const Shape& shape) { return Operand::Dense(DType::kFloat32, shape); };
  const Operand x = dense({4, 3}), c = dense({3});
  const KernelTable table = MakeTable({});
  const auto message = [&table](const KernelRequest& request) {
    return std::string(Message(table.Prepare(request).status()));
  };
  EXPECT_EQ(message({"FusedBatchNorm", {}, {x, c}, {x, c, c}}),
            "device CUDA: FusedBatchNorm(float32[4,3], float32[3]) -> float32[4,3], float32[3], "
            "float32[3]: expected 3 inputs and 3 outputs");
  EXPECT_NE(message({"FusedBatchNormEx", {}, {x, c, c, x}, {x, c, c}})
                .find("a side input needs an activation"),
            std::string::npos);
  const Operand doubles = Operand::Dense(DType::kFloat64, {4, 3});
  const Operand d = Operand::Dense(DType::kFloat64, {3});
  EXPECT_NE(message({"FusedBatchNorm", {}, {doubles, d, d}, {doubles, d, d}})
                .find("no kernel for dtype float64"),
            std::string::npos);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
