// Checks the programs that passes build for devices with kernels for them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes.h"

namespace tfjob::graph {
namespace {

constexpr DType kF32 = DType::kFloat32, kHalf = DType::kBFloat16;

Graph Finish(Builder& b) {
  EXPECT_TRUE(b.ok()) << b.status();
  return *std::move(b).Finish();
}

Graph Fused(Builder& b) {
  return RemoveDeadCode(FuseElementwise(Finish(b), Fusion::kRecompute));
}

// Returns "Op" or, for programs, "Op: program" for each node with inputs.
std::vector<std::string> TextOf(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    const auto* const program = node.attributes.Find<std::string>("program");
    all.push_back(program == nullptr ? node.op : node.op + ": " + *program);
  }
  return all;
}
using Text = std::vector<std::string>;

// The derivative of x·tanh(x) uses the hyperbolic tangent, too.
TEST(Recompute, ComputesAValueAgainInsteadOfStoringIt) {
  Builder b;
  const Output x = Exp(b, Placeholder(b, "x", kF32, {4, 3})), product = MatMul(b, x, x, true);
  const Output tanh = Tanh(b, product);
  b.AddFetch("y", Mul(b, product, tanh));
  b.AddFetch("z", Sum(b, Mul(b, tanh, Scalar(b, kF32, 2)), {0}));
  EXPECT_EQ(TextOf(Fused(b)), (Text{"Exp", "MatMul", "FusedElementwise: Tanh i0; Mul i0 t0",
                                    "FusedElementwise: Tanh i0; Mul t0 2", "Sum"}));
}

TEST(Recompute, OnlyOnRequest) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3}), tanh = Tanh(b, x);
  b.AddFetch("y", Mul(b, x, tanh));
  b.AddFetch("z", Exp(b, tanh));
  EXPECT_EQ(TextOf(FuseElementwise(Finish(b))), (Text{"Tanh", "Mul", "Exp"}));
}

TEST(Recompute, ReadsAStoredValueUnlessItsInputIsSmaller) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3}), narrow = Placeholder(b, "n", kHalf, {4, 3});
  const Output stored = Tanh(b, x), wide = Cast(b, narrow, kF32);
  b.AddFetch("stored", stored);
  b.AddFetch("wide", wide);
  b.AddFetch("y", Square(b, Exp(b, stored)));
  b.AddFetch("z", Square(b, Exp(b, wide)));
  EXPECT_EQ(TextOf(Fused(b)), (Text{"Tanh", "Cast", "FusedElementwise: Exp i0; Square t0",
                                    "FusedElementwise: Exp i0; Square t0"}));
  Builder again;
  const Output a = Placeholder(again, "a", kF32, {4, 3}), c = Placeholder(again, "c", kF32, {4, 3});
  const Output sum = Add(again, a, c);  // both inputs together are larger than the sum
  again.AddFetch("y", Square(again, Exp(again, sum)));
  again.AddFetch("z", Neg(again, Exp(again, sum)));
  EXPECT_EQ(TextOf(Fused(again)), (Text{"Add", "FusedElementwise: Exp i0; Square t0",
                                        "FusedElementwise: Exp i0; Neg t0"}));
}

TEST(Recompute, DoesNotReadAVariableLater) {
  Builder b;
  const Output x = ReadVariable(b, "w", kF32, {4, 3}), tanh = Tanh(b, x);
  b.AddFetch("y", Neg(b, Square(b, tanh)));
  Assign(b, "w", Neg(b, Exp(b, tanh)));
  b.AddFetch("z", Neg(b, Sqrt(b, tanh)));
  const Text text = TextOf(Fused(b));
  EXPECT_EQ(text[0], "Tanh");
  EXPECT_EQ(text.back(), "FusedElementwise: Sqrt i0; Neg t0");
}

TEST(Programs, ConvertTypesAndRoundOnce) {
  Builder b;
  const Output x = Placeholder(b, "x", kHalf, {4, 3}), y = Placeholder(b, "y", kF32, {4, 3});
  b.AddFetch("z", Cast(b, Square(b, Sub(b, Cast(b, x, kF32), y)), kHalf));
  const Graph graph = Fused(b);
  EXPECT_EQ(TextOf(graph), (Text{"FusedElementwise: Sub i0 i1; Square t0"}));
  EXPECT_EQ(graph.type(graph.FindFetch("z")->output).ToString(), "bfloat16[4,3]");
  // A value that is rounded in between is stored.
  Builder again;
  const Output wide = Placeholder(again, "x", kF32, {4, 3});
  again.AddFetch("z", Neg(again, Square(again, Cast(again, Exp(again, Neg(again, wide)), kHalf))));
  EXPECT_EQ(TextOf(Fused(again)),
            (Text{"FusedElementwise: Neg i0; Exp t0", "FusedElementwise: Square i0; Neg t0"}));
}

TEST(Programs, ReadColumnsAndBroadcasts) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3}), column = Placeholder(b, "c", kF32, {4, 1});
  b.AddFetch("y", Add(b, Mul(b, x, column), BroadcastTo(b, column, {4, 3})));
  EXPECT_EQ(TextOf(Fused(b)), (Text{"FusedElementwise: Mul i0 i1; Add t0 i1"}));
}

TEST(Programs, DropElements) {
  Builder b;
  const Output x = Placeholder(b, "x", kHalf, {4, 3}), y = Placeholder(b, "y", kHalf, {4, 3});
  const Output step = Placeholder(b, "step", DType::kInt64, {});
  const Output seed = Placeholder(b, "seed", DType::kInt64, {});
  b.AddFetch("z", Add(b, Dropout(b, x, step, seed, 0.25), y));
  const Graph graph = Fused(b);
  EXPECT_EQ(TextOf(graph), (Text{"FusedElementwise: Dropout i0 0.25 0; Add t0 i1"}));
  const Node& program = graph.node(graph.FindFetch("z")->output);
  ASSERT_EQ(program.inputs.size(), 4u);
  EXPECT_EQ(graph.NameOf(program.inputs[2]), "step");
  EXPECT_EQ(graph.NameOf(program.inputs[3]), "seed");
}

TEST(Programs, DrawFromOneStream) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3});
  const Output step = Placeholder(b, "step", DType::kInt64, {});
  const Output seed = Placeholder(b, "seed", DType::kInt64, {});
  const Output first = Dropout(b, Neg(b, x), step, seed, 0.25);
  b.AddFetch("z", Square(b, Dropout(b, first, seed, seed, 0.25)));
  EXPECT_EQ(TextOf(Fused(b)), (Text{"FusedElementwise: Neg i0; Dropout t0 0.25 0",
                                    "FusedElementwise: Dropout i0 0.25 1; Square t0"}));
}

// Returns the ops of a LayerNormalizationGrad whose first output is added to `added`, which the
// graph computes after the gradient if `late` is set.
Text ResidualOps(bool late, bool other_use) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3}), gamma = Placeholder(b, "gamma", kF32, {3});
  const Output statistics = Placeholder(b, "s", kF32, {2, 4}),
               dy = Placeholder(b, "dy", kF32, {4, 3});
  Output added = late ? Output() : Exp(b, x);
  const Output dx = b.Add("LayerNormalizationGrad", {x, gamma, statistics, dy}, {{"dtype", kF32}});
  if (late) added = Exp(b, x);
  b.AddFetch("sum", Add(b, added, dx));
  b.AddFetch("d_beta", Output{dx.node, 2});
  if (other_use) b.AddFetch("dx", dx);
  return TextOf(RemoveDeadCode(FuseResidualGradient(Finish(b))));
}

TEST(FuseResidualGradient, AddsAnEarlierGradientThatHasNoOtherUse) {
  EXPECT_EQ(ResidualOps(false, false), (Text{"Exp", "LayerNormalizationGrad"}));
  EXPECT_EQ(ResidualOps(true, false), (Text{"LayerNormalizationGrad", "Exp", "Add"}));
  EXPECT_EQ(ResidualOps(false, true), (Text{"Exp", "LayerNormalizationGrad", "Add"}));
}

TEST(FuseProductSum, AddsTheProductsOfAChain) {
  Builder b;
  const Output x = Placeholder(b, "x", kHalf, {4, 3}), w = Placeholder(b, "w", kHalf, {3, 3});
  const Output first = MatMul(b, Neg(b, x), w), second = MatMul(b, x, w, false, true);
  const Output sum = Add(b, first, second);  // before Exp, whatever the order of arguments
  b.AddFetch("y", Add(b, sum, MatMul(b, Exp(b, x), w)));
  EXPECT_EQ(TextOf(FuseProductSum(Finish(b))),
            (Text{"Neg", "MatMul", "MatMulAdd", "Exp", "MatMulAdd"}));
}

// Returns the ops of a product that is added to `added`.
Text SumOps(Output (*added)(Builder& b, Output x, Output product), bool transpose = false) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {3, 3}), w = Placeholder(b, "w", kF32, {3, 3});
  const Output product = MatMul(b, x, w, transpose);
  b.AddFetch("y", Add(b, product, added(b, x, product)));
  return TextOf(FuseProductSum(Finish(b)));
}

TEST(FuseProductSum, LeavesOtherSumsAlone) {
  const auto other = [](Builder& b, Output, Output) { return Placeholder(b, "z", kF32, {3, 3}); };
  EXPECT_EQ(SumOps(other), (Text{"MatMulAdd"}));
  EXPECT_EQ(SumOps(other, true), (Text{"MatMul", "Add"}));
  EXPECT_EQ(SumOps([](Builder&, Output x, Output) { return x; }), (Text{"MatMul", "Add"}));
  EXPECT_EQ(SumOps([](Builder& b, Output x, Output) { return Identity(b, x, "same"); }),
            (Text{"MatMul", "Identity", "Add"}));
  EXPECT_EQ(SumOps([](Builder& b, Output, Output product) { return Neg(b, product); }),
            (Text{"MatMul", "Neg", "Add"}));
  EXPECT_EQ(SumOps([](Builder& b, Output, Output) { return Placeholder(b, "z", kF32, {3}); }),
            (Text{"MatMul", "Add"}));
}

TEST(ReadHalfGradients, DropsTheConversion) {
  Builder b;
  const Output half = Placeholder(b, "half", kHalf, {3});
  const Output step = Placeholder(b, "step", DType::kInt64, {});
  ApplyOptimizer(b, "w", Cast(b, half, kF32), step, {});
  ApplyOptimizer(b, "v", Cast(b, Placeholder(b, "x", DType::kInt32, {3}), kF32), step, {});
  const Graph graph = ReadHalfGradients(Finish(b));
  EXPECT_EQ(TextOf(graph), (Text{"ApplyOptimizer", "Cast", "ApplyOptimizer"}));
}

}  // namespace
}  // namespace tfjob::graph
