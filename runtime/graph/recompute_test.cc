#include "runtime/graph/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "runtime/graph/gradients.h"
#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes.h"

namespace tfjob::graph {
namespace {

Output Weights(Builder& b, const std::string& name) {
  return ReadVariable(b, name, DType::kFloat32, {3, 3});
}

// Returns the gradients of mean(y * y), where z = tanh(tanh(x w) v) is computed in the scope, and
// y = z u is not.
Graph GradientsOfTwoLayers(bool recompute) {
  Builder b;
  const Output x = Placeholder(b, "x", DType::kFloat32, {2, 3});
  const std::vector<Output> wrt = {Weights(b, "w"), Weights(b, "v"), Weights(b, "u")};
  Output z;
  {
    std::optional<RecomputeScope> scope;
    if (recompute) scope.emplace(b);
    const Output inner = Tanh(b, MatMul(b, x, wrt[0]));
    const RecomputeScope without_effect(b);
    z = Tanh(b, MatMul(b, inner, wrt[1]));
  }
  const Output y = MatMul(b, z, wrt[2]);
  const Output loss = Mean(b, Mul(b, y, y), {});
  b.AddFetch("loss", loss);
  const std::vector<Output> gradients = Gradients(b, loss, wrt);
  for (size_t i = 0; i < gradients.size(); ++i) b.AddFetch(StrCat("gradient ", i), gradients[i]);
  const auto graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return RemoveDeadCode(MergeCommonSubexpressions(*graph));
}

// A copy would be one more exchange.
TEST(Recompute, CopiesNoExchange) {
  Builder b;
  const Output x = ReadVariable(b, "x", DType::kFloat32, {3});
  Output y;
  {
    const RecomputeScope scope(b);
    y = Tanh(b, Mul(b, x, AllReduceMean(b, Exp(b, x))));
  }
  const std::vector<Output> wrt = {x};
  b.AddFetch("gradient", Gradients(b, Sum(b, Square(b, y), {}), wrt)[0]);
  const Graph graph = *std::move(b).Finish();
  EXPECT_EQ(Exchanges(graph).size(), 2u) << graph.ToString();  // one is the gradient's
  EXPECT_EQ(std::ranges::count(graph.nodes(), "Exp", &Node::op), 2) << graph.ToString();
}

// Returns the names of the forward values that a gradient uses, apart from feeds and variables.
std::set<std::string> UsedByGradients(const Graph& graph) {
  std::set<std::string> used;
  for (const Node& node : graph.nodes()) {
    if (!node.name.starts_with("gradients/")) continue;
    for (const Output input : node.inputs) {
      const std::string name = graph.node(input).name;
      if (FindOp(graph.node(input).op)->effect == Effect::kNone &&
          !name.starts_with("gradients/") && !graph.node(input).inputs.empty())
        used.insert(name);
    }
  }
  return used;
}

TEST(Recompute, GradientsUseOnlyTheValuesThatAreKept) {
  EXPECT_EQ(UsedByGradients(GradientsOfTwoLayers(false)),
            (std::set<std::string>{"Tanh", "Tanh_1", "MatMul_3"}));
  EXPECT_EQ(UsedByGradients(GradientsOfTwoLayers(true)),
            (std::set<std::string>{"Tanh_1", "MatMul_3"}))
      << GradientsOfTwoLayers(true).ToString();
}

TEST(Recompute, OnlyWhatAGradientNeedsIsComputedAgain) {
  const Graph graph = GradientsOfTwoLayers(true);
  std::string copies;
  for (const Node& node : graph.nodes()) {
    if (node.attributes.Get(kRecomputed, false)) copies += node.op + " ";
  }
  EXPECT_EQ(copies, "MatMul Tanh ") << graph.ToString();
}

}  // namespace
}  // namespace tfjob::graph
