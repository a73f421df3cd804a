// Compares batch normalisation and its gradient with those of the CPU, over random shapes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"

namespace tfjob::kernels::cuda {
namespace {

// The CPU adds in a different order.
constexpr double kTolerance = 2e-5;

// Returns attributes with a large epsilon: some variances are 0, and a small epsilon would then
// multiply rounding errors by a large factor.
Attributes NormAttributes(bool relu) {
  Attributes attributes = {{"epsilon", 0.25}};
  if (relu) attributes.Set("activation", std::string("Relu"));
  return attributes;
}

// Returns the ops with all combinations of an activation and a side input.
std::vector<Comparison> NormsOf(const Shape& shape, double low, double high) {
  const RandomOperand x{.shape = shape, .low = low, .high = high};
  const RandomOperand channel{.shape = {shape.dim(-1)}};
  std::vector<Comparison> all;
  for (const bool relu : {false, true}) {
    for (const bool side : {false, true}) {
      if (side && !relu) continue;
      Comparison norm{.op = relu ? "FusedBatchNormEx" : "FusedBatchNorm",
                      .attributes = NormAttributes(relu),
                      .inputs = {x, channel, channel},
                      .outputs = {{shape}, channel, channel},
                      .tolerance = kTolerance};
      if (side) norm.inputs.push_back({shape});
      all.push_back(norm);
    }
  }
  return all;
}

// Returns the gradients with all combinations of an activation, a side input, and a second tensor.
std::vector<Comparison> GradientsOf(const Shape& shape) {
  const RandomOperand channel{.shape = {shape.dim(-1)}};
  const RandomOperand variance{.shape = {shape.dim(-1)}, .low = 0.5};
  std::vector<Comparison> all;
  for (int more = -1; more <= 2; ++more) {  // -1: without an activation
    Comparison gradient{.op = more < 0 ? "FusedBatchNormGrad" : "FusedBatchNormGradEx",
                        .attributes = NormAttributes(more >= 0),
                        .inputs = {{shape}, {shape}, channel, channel, channel, variance},
                        .outputs = {{shape}, channel, channel},
                        .tolerance = kTolerance,
                        .floor = 4};
    for (int i = 0; i < more; ++i) gradient.inputs.push_back({shape});
    if (more > 0) gradient.outputs.push_back({shape});
    all.push_back(gradient);
  }
  return all;
}

int64_t DrawNorm(PhiloxStream& random, std::initializer_list<int64_t> sizes) {
  return sizes.begin()[random.Below(static_cast<uint32_t>(sizes.size()))];
}

TEST(BatchNorm, EqualsTheCpus) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    PhiloxStream random(seed);
    const Shape shape = {DrawNorm(random, {1, 2, 3}), DrawNorm(random, {1, 5, 16}),
                         DrawNorm(random, {1, 3, 11}), DrawNorm(random, {1, 3, 32, 37})};
    for (const Comparison& norm : NormsOf(shape, -3, 3)) Compare(norm, seed);
    for (const Comparison& gradient : GradientsOf(shape)) Compare(gradient, seed);
  }
}

// The cases merge the moments of one part and a single row, of several parts, and of parts in two
// steps.
TEST(BatchNorm, OfManyRowsEqualsTheCpus) {
  for (const int64_t rows : {257, 1000, 256 * 256 + 300}) {
    for (const Comparison& norm : NormsOf({rows, 2}, -3, 3)) Compare(norm, 1);
    if (rows > 1000) continue;
    for (const Comparison& gradient : GradientsOf({rows, 2})) Compare(gradient, 1);
  }
}

TEST(BatchNorm, KeepsTheVarianceOfValuesFarFromZero) {
  Comparison norm = NormsOf({600, 3}, 998, 1002)[0];
  norm.tolerance = 5e-4;  // of y, whose terms are about 1,000
  Compare(norm, 1);
}

// The mean of no rows is NaN.
TEST(BatchNorm, OfNoRowsEqualsTheCpus) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const Comparison& norm : NormsOf({0, 3}, -3, 3)) Compare(norm, seed);
    for (const Comparison& gradient : GradientsOf({0, 3})) Compare(gradient, seed);
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
