// Checks that the passes never merge nodes with different device constraints.
#include <gtest/gtest.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/test_graphs.h"

namespace tfjob::graph {
namespace {

constexpr DType kFloat = DType::kFloat32;

// Gives the nodes two devices in turn.
Graph OnTwoDevices(const Graph& graph) {
  Graph placed;
  for (Node node : graph.nodes()) {
    node.device = StrCat("/device:CPU:", placed.nodes().size() % 2);
    placed.Append(std::move(node));
  }
  for (const Fetch& fetch : graph.fetches()) placed.AddFetch(fetch);
  return placed;
}

// Returns a graph that consists of patterns that the passes fuse.
Graph Patterns() {
  Builder b;
  const Output x = Placeholder(b, "x", kFloat, {4, 4}), bias = Placeholder(b, "bias", kFloat, {4});
  const Output labels = Placeholder(b, "labels", kFloat, {4, 4});
  const Output images = Placeholder(b, "images", kFloat, {2, 4, 4});
  b.AddFetch("dense", Relu(b, BiasAdd(b, MatMul(b, x, x), bias)));
  b.AddFetch("loss", Neg(b, Sum(b, Mul(b, labels, Log(b, Softmax(b, x))), {1})));
  b.AddFetch("product", BatchMatMul(b, images, Transpose(b, images, {0, 2, 1})));
  b.AddFetch("chain", Exp(b, Tanh(b, Square(b, x))));
  return Finished(b);
}

TEST(Optimize, NeverMergesNodesWithDifferentDevices) {
  const Graph graph = Patterns();
  const StatusOr<Graph> fused = Optimize(graph, nullptr);
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_EQ(OpsOf(*fused), (Ops{"FusedMatMul", "SoftmaxCrossEntropyWithLogits", "BatchMatMulV2",
                                "FusedElementwise"}));

  const Graph placed = OnTwoDevices(graph);
  const StatusOr<Graph> apart = Optimize(placed, nullptr);
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(*apart, placed) << apart->ToString();
}

TEST(Optimize, MergesNodesThatHaveTheSameDevice) {
  const Graph graph = Patterns();
  Graph placed;
  for (Node node : graph.nodes()) {
    node.device = "/device:CPU:0";
    placed.Append(std::move(node));
  }
  for (const Fetch& fetch : graph.fetches()) placed.AddFetch(fetch);
  const StatusOr<Graph> fused = Optimize(placed, nullptr);
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_EQ(OpsOf(*fused).size(), 4u) << fused->ToString();
}

TEST(MarkDeviceBoundaries, SharesABoundaryBetweenTheUsersOnADevice) {
  Builder b;
  const Output x = Placeholder(b, "x", kFloat, {2});
  const Output exponential = Exp(b, x);
  b.AddFetch("y", Add(b, exponential, Neg(b, x)));
  const Graph graph = Finished(b);
  Graph placed;
  for (Node node : graph.nodes()) {
    if (!node.inputs.empty()) node.device = "/device:CPU:1";
    placed.Append(std::move(node));
  }
  placed.AddFetch({"y", {3, 0}});
  const Graph marked = MarkDeviceBoundaries(placed);
  EXPECT_EQ(OpsOf(marked), (Ops{"Identity", "Exp", "Neg", "Add"}));
  EXPECT_EQ(DropDeviceBoundaries(marked), placed);
}

}  // namespace
}  // namespace tfjob::graph
