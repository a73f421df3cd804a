#include "runtime/exec/fuse_bias_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Output;
using testing::Contains;
using testing::Not;

constexpr DType kF32 = DType::kFloat32;

std::vector<std::string> OpsOf(const Graph& graph) {
  std::vector<std::string> ops;
  for (const graph::Node& node : graph.nodes()) ops.push_back(node.op);
  return ops;
}

const graph::Node* FindOp(const Graph& graph, const std::string& op) {
  for (const graph::Node& node : graph.nodes())
    if (node.op == op) return &node;
  return nullptr;
}

// Returns the graph after the pass. Fetches the values as "0", "1" and so on.
Graph Fused(Builder& b, const std::vector<Output>& fetches) {
  for (size_t i = 0; i < fetches.size(); ++i) b.AddFetch(std::to_string(i), fetches[i]);
  const auto graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return FuseBiasGradient(*graph);
}

// A layer's matrix may be stored transposed, and its input may have several leading axes.
TEST(FuseBiasGradient, JoinsTheGradientsOfALayer) {
  for (const bool transposed : {false, true}) {
    for (const Shape& rows : {Shape({6, 3}), Shape({2, 3, 3})}) {
      if (transposed && rows.rank() > 2) continue;
      const Shape matrix = transposed ? Shape({4, 3}) : Shape({3, 4});
      Builder b;
      const Output x = Placeholder(b, "x", kF32, rows);
      const Output w = ReadVariable(b, "w", kF32, matrix);
      const Output bias = ReadVariable(b, "b", kF32, {4});
      const Output y = BiasAdd(b, MatMul(b, x, w, false, transposed), bias);
      const Output loss = Sum(b, Square(b, y), {});
      const Graph fused = Fused(b, Gradients(b, loss, std::vector{w, bias}));
      const graph::Node* const node = FindOp(fused, "MatMulBiasGrad");
      ASSERT_NE(node, nullptr);
      EXPECT_EQ(node->attributes.Get("summed", int64_t{-1}), transposed ? 0 : 1);
      EXPECT_THAT(OpsOf(fused), Not(Contains("BiasAddGrad")));
      EXPECT_EQ(fused.type(fused.fetches()[0].output).shape, matrix);
      EXPECT_EQ(fused.type(fused.fetches()[1].output).shape, Shape({4}));
      EXPECT_EQ(fused.fetches()[1].output.index, 1);
    }
  }
}

TEST(FuseBiasGradient, LeavesOtherProductsAlone) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 4}), dy = Placeholder(b, "dy", kF32, {4, 4});
  // The first product sums over the columns of dy, and the second product needs these sums.
  const Output sums = BiasAddGrad(b, dy);
  const Output first = MatMul(b, x, dy, false, true);
  const Output second = MatMul(b, BiasAdd(b, x, sums), dy);
  const Graph fused = Fused(b, {sums, first, second});
  EXPECT_THAT(OpsOf(fused), Not(Contains("MatMulBiasGrad")));
  EXPECT_THAT(OpsOf(fused), Contains("BiasAddGrad").Times(1));
  EXPECT_THAT(OpsOf(fused), Contains("MatMul").Times(2));
}

// Only one of two products with the same gradient computes the sums.
TEST(FuseBiasGradient, SumsOnce) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {5, 2}), z = Placeholder(b, "z", kF32, {5, 3});
  const Output dy = Placeholder(b, "dy", kF32, {5, 4});
  const Output first = MatMul(b, x, dy, true), second = MatMul(b, z, dy, true);
  const Graph fused = Fused(b, {first, second, BiasAddGrad(b, dy)});
  EXPECT_THAT(OpsOf(fused), Contains("MatMulBiasGrad").Times(1));
  EXPECT_THAT(OpsOf(fused), Contains("MatMul").Times(1));
  EXPECT_EQ(fused.fetches()[2].output, (Output{fused.fetches()[0].output.node, 1}));
}

}  // namespace
}  // namespace tfjob::exec
