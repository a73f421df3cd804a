// Checks the programs that passes build for devices with kernels for them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/graph/gelu.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/test_graphs.h"

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

// Two layers, of which the first computes an approximate GELU. Returns the ops without sources.
struct GeluLayers {
  DType dtype = kHalf;
  bool bias = true, gradients = true, transpose = false;
  bool reshapes = false;         // GELU has another shape than the product, as in the layer Dense
  bool fetches_product = false;  // the gradient of the GELU's result has another use
};
Graph GeluGraph(const GeluLayers& layers) {
  Builder b;
  const DType type = layers.dtype;
  const Shape rows = layers.reshapes ? Shape({8, 3}) : Shape({2, 4, 3});
  const Output x = Placeholder(b, "x", type, rows), v = ReadVariable(b, "v", type, {3, 8});
  const Output w = ReadVariable(b, "w", type, layers.transpose ? Shape({3, 8}) : Shape({8, 3}));
  const Output bias = ReadVariable(b, "b", type, {8});
  const Output hidden = MatMul(b, x, v);
  const Output sum = layers.bias ? BiasAdd(b, hidden, bias) : hidden;
  const Output z = layers.reshapes ? Reshape(b, sum, {2, 4, 8}) : sum;
  const Output gelu = ApproximateGelu(b, z);
  const Output y =
      MatMul(b, layers.reshapes ? Reshape(b, gelu, {8, 8}) : gelu, w, false, layers.transpose);
  b.AddFetch("y", y);
  if (layers.gradients) {
    const Output loss = Sum(b, Exp(b, y), {});
    b.AddFetch("dv", Gradients(b, loss, std::vector{v})[0]);
  }
  Graph graph = Finish(b);
  if (!layers.fetches_product) return FuseGelu(graph);
  int product = -1;  // the last one by w, which is the gradient of the result of GELU
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id)
    if (graph.node(id).op == "MatMul" && graph.node(id).inputs[1] == w) product = id;
  graph.AddFetch({"product", {product, 0}});
  return FuseGelu(graph);
}

TEST(FuseGelu, JoinsProductsWithGeluAndItsGradient) {
  for (const bool bias : {false, true}) {
    for (const bool transpose : {false, true}) {
      const Graph graph = GeluGraph({.bias = bias, .transpose = transpose});
      EXPECT_EQ(TextOf(graph), (Text{"MatMulGelu", "MatMul", "Exp", "Reshape", "BroadcastTo", "Mul",
                                     "MatMulGeluGrad", "MatMul"}));
      const Node* const gelu = FindNode(graph, "MatMulGelu");
      const Node* const gradient = FindNode(graph, "MatMulGeluGrad");
      ASSERT_TRUE(gelu != nullptr && gradient != nullptr);
      EXPECT_EQ(gelu->inputs.size(), bias ? 3U : 2U);
      EXPECT_EQ(gelu->attributes.Get("bias", false), bias);
      EXPECT_EQ(graph.node(gradient->inputs[2]).op, "MatMulGelu");
      EXPECT_EQ(gradient->inputs[2].index, 1);
      EXPECT_EQ(gradient->attributes.Get("transpose_b", false), !transpose);
    }
  }
  EXPECT_EQ(TextOf(GeluGraph({.gradients = false})), (Text{"MatMulGelu", "MatMul"}));
}

TEST(FuseGelu, IgnoresReshapes) {
  const Graph graph = GeluGraph({.reshapes = true});
  Text ops = TextOf(graph);
  std::erase(ops, "Reshape");
  EXPECT_EQ(
      ops, (Text{"MatMulGelu", "MatMul", "Exp", "BroadcastTo", "Mul", "MatMulGeluGrad", "MatMul"}));
  EXPECT_EQ(graph.type(graph.FindFetch("y")->output).shape, Shape({8, 3}));
}

TEST(FuseGelu, LeavesOtherGraphsAlone) {
  EXPECT_EQ(FindNode(GeluGraph({.dtype = kF32}), "MatMulGelu"), nullptr);
  EXPECT_EQ(FindNode(GeluGraph({.dtype = kF32}), "MatMulGeluGrad"), nullptr);
  for (const bool reshapes : {false, true}) {
    const Graph shared = GeluGraph({.reshapes = reshapes, .fetches_product = true});
    EXPECT_NE(FindNode(shared, "MatMulGelu"), nullptr);
    EXPECT_EQ(FindNode(shared, "MatMulGeluGrad"), nullptr);
  }
  Builder b;  // another factor
  const Output x = Placeholder(b, "x", kHalf, {4, 8}), z = MatMul(b, x, x, false, true);
  const Output tanh = Tanh(b, Mul(b, z, Scalar(b, kHalf, 0.8)));
  b.AddFetch("y", Mul(b, Mul(b, z, Scalar(b, kHalf, 0.5)), Add(b, tanh, Scalar(b, kHalf, 1))));
  EXPECT_EQ(FindNode(FuseGelu(Finish(b)), "MatMulGelu"), nullptr);
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
