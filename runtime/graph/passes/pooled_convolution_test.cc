// Checks the passes that rewrite convolutions whose outputs are pooled.
#include <gtest/gtest.h>

#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/test_graphs.h"
#include "runtime/tensor/window.h"

namespace tfjob::graph {
namespace {

constexpr DType kFloats = DType::kFloat32;

// Builds a convolution of 2 images of 6×6, with a bias and Relu, and MaxPool with windows of 2×2.
// If `gradient` is set, fetches the gradients of the filter and the bias.
Graph PooledConvolution(bool gradient, bool fetch_relu = false, int pools = 1) {
  const Window square{.height = {2, 2}, .width = {2, 2}};
  Builder b;
  const Output w = Placeholder(b, "w", kFloats, {3, 3, 3, 5});
  const Output bias = Placeholder(b, "bias", kFloats, {5});
  const Output x = Placeholder(b, "x", kFloats, {2, 8, 8, 3});
  const Output y = Relu(b, BiasAdd(b, Conv2D(b, x, w, {.height = {3}, .width = {3}}), bias));
  Output loss = Sum(b, Square(b, MaxPool(b, y, square)), {});
  if (pools == 2) loss = Add(b, loss, Sum(b, MaxPool(b, y, {}), {}));
  b.AddFetch("loss", loss);
  if (fetch_relu) b.AddFetch("y", y);
  if (gradient) {
    const std::vector<Output> found = Gradients(b, loss, std::vector{w, bias});
    b.AddFetch("dw", found[0]);
    b.AddFetch("dbias", found[1]);
  }
  return RemoveDeadCode(Finished(b));
}

// Returns the op of the node that computes input `input` of the first node with op `op`.
std::string OpBefore(const Graph& graph, std::string_view op, size_t input) {
  const Node* node = FindNode(graph, op);
  return node == nullptr ? "no such node" : graph.node(node->inputs[input]).op;
}

TEST(MoveReluBehindMaxPool, MovesItsGradientAndThatOfTheBiasToo) {
  const Graph alone = MoveReluBehindMaxPool(PooledConvolution(false));
  EXPECT_EQ(OpsOf(alone), (Ops{"Conv2D", "BiasAdd", "MaxPool", "Relu", "Square", "Sum"}));
  const Graph graph = MoveReluBehindMaxPool(PooledConvolution(true));
  EXPECT_EQ(OpBefore(graph, "MaxPool", 0), "BiasAdd");
  EXPECT_EQ(OpBefore(graph, "Square", 0), "Relu");
  EXPECT_EQ(OpBefore(graph, "MaxPoolGrad", 0), "BiasAdd");
  EXPECT_EQ(OpBefore(graph, "MaxPoolGrad", 1), "Relu");
  EXPECT_EQ(OpBefore(graph, "MaxPoolGrad", 2), "ReluGrad");
  EXPECT_EQ(OpBefore(graph, "Conv2DBackpropFilter", 1), "MaxPoolGrad");
  EXPECT_EQ(OpBefore(graph, "BiasAddGrad", 0), "ReluGrad");
  EXPECT_EQ(graph.type(FindNode(graph, "BiasAddGrad")->inputs[0]).shape, Shape({2, 3, 3, 5}));
}

TEST(MoveReluBehindMaxPool, LeavesAReluThatHasOtherUses) {
  for (const bool gradient : {false, true}) {
    for (const Graph& graph :
         {PooledConvolution(gradient, true), PooledConvolution(gradient, false, 2)}) {
      EXPECT_EQ(MoveReluBehindMaxPool(graph), graph);
    }
  }
  Builder b;  // a Relu of something else than a convolution
  b.AddFetch("y", MaxPool(b, Relu(b, Placeholder(b, "x", kFloats, {1, 4, 4, 3})), {}));
  EXPECT_EQ(OpsOf(MoveReluBehindMaxPool(Finished(b))), (Ops{"Relu", "MaxPool"}));
}

TEST(MarkSparseGradients, MarksConvolutionsThatWerePooled) {
  const auto density = [](const Graph& graph) {
    return FindNode(MarkSparseGradients(graph), "Conv2DBackpropFilter")
        ->attributes.Get("dy_density", 1.0);
  };
  const Graph graph = PooledConvolution(true);
  EXPECT_EQ(density(graph), 0.25);
  EXPECT_EQ(density(MoveReluBehindMaxPool(graph)), 0.25);
  EXPECT_EQ(density(PooledConvolution(true, false, 2)), 1);  // the sum of two gradients
}

}  // namespace
}  // namespace tfjob::graph
