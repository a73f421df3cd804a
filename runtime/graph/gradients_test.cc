// Tests the structure of gradient graphs, and the errors. The values of gradients are tested where
// kernels are available: runtime/exec/gradients_test.cc compares them with central differences.
#include "runtime/graph/gradients.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

constexpr DType kF32 = DType::kFloat32;

TEST(Gradients, SumTheContributionsOfEveryUse) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {3});
  const Output loss = Sum(b, Add(b, Exp(b, x), Square(b, x)), {});
  const std::vector<Output> gradients = Gradients(b, loss, std::vector{x});
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(b.graph().node(gradients[0]).op, "Add");
  EXPECT_EQ(b.graph().node(gradients[0]).name.substr(0, 10), "gradients/");
}

TEST(Gradients, FlowThroughCastsBetweenFloatTypes) {
  for (const DType half : {DType::kBFloat16, DType::kFloat16}) {
    Builder b;
    const Output x = Placeholder(b, "x", kF32, {3});
    const Output y = Mul(b, Cast(b, x, half), Scalar(b, half, 2));
    const Output loss = Sum(b, Cast(b, y, kF32), {});
    const std::vector<Output> gradients = Gradients(b, loss, std::vector{x});
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_EQ(b.type(gradients[0]), b.type(x));
    const Node& cast = b.graph().node(gradients[0]);
    EXPECT_EQ(cast.op, "Cast");
    EXPECT_EQ(b.type(cast.inputs[0]).dtype, half) << "the arithmetic is in the half type";
  }
}

TEST(Gradients, HaveTheTypeOfWhatTheyAreOfAfterBroadcasting) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3});
  const Output row = Placeholder(b, "row", kF32, {3});
  const Output column = Placeholder(b, "column", kF32, {4, 1});
  const Output scalar = Placeholder(b, "scalar", kF32, {});
  const Output y = Mul(b, Add(b, x, row), Div(b, column, scalar));
  const std::vector<Output> wrt{x, row, column, scalar};
  const std::vector<Output> gradients = Gradients(b, Mean(b, y, {}), wrt);
  ASSERT_TRUE(b.ok()) << b.status();
  for (size_t i = 0; i < wrt.size(); ++i) EXPECT_EQ(b.type(gradients[i]), b.type(wrt[i]));
}

TEST(Gradients, OfLateLayersComeFirst) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 2});
  const Output first = ReadVariable(b, "first", kF32, {2, 2});
  const Output second = ReadVariable(b, "second", kF32, {2, 2});
  const Output y = MatMul(b, Tanh(b, MatMul(b, x, first)), second);
  const std::vector<Output> gradients = Gradients(b, Sum(b, y, {}), std::vector{first, second});
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_LT(gradients[1].node, gradients[0].node);
}

TEST(Gradients, StopAtIntegersAndComparisons) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {3});
  const Output mask = Cast(b, Greater(b, x, Scalar(b, kF32, 0)), kF32);
  const Output loss = Sum(b, Mul(b, x, mask), {});
  const std::vector<Output> gradients = Gradients(b, loss, std::vector{x});
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(b.graph().node(gradients[0]).op, "Mul");
}

TEST(Gradients, NameTheOpThatHasNone) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {3});
  Gradients(b, Sum(b, ReluGrad(b, x, x), {}), std::vector{x});
  EXPECT_EQ(Message(b.status()), "node ReluGrad: op ReluGrad has no gradient");
}

TEST(Gradients, NameTheVariableThatTheLossDoesNotDependOn) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {3});
  const Output unused = ReadVariable(b, "unused", kF32, {3});
  Gradients(b, Sum(b, x, {}), std::vector{x, unused});
  EXPECT_NE(Message(b.status()).find("the loss Sum does not depend on unused"), std::string::npos);
}

// Returns the gradient of a table. The loss is the sum of the table rows that two batches of ids
// select. If `dense` is set, the loss also uses the whole table.
GradientOrRows OfTable(Builder& b, bool dense) {
  const Output table = ReadVariable(b, "table", kF32, {9, 4});
  const Output first = Placeholder(b, "first", DType::kInt32, {5});
  const Output second = Placeholder(b, "second", DType::kInt64, {2, 3});
  Output loss = Add(b, Sum(b, Gather(b, table, first), {}), Sum(b, Gather(b, table, second), {}));
  if (dense) loss = Add(b, loss, Sum(b, Square(b, table), {}));
  const std::vector<GradientOrRows> gradients = GradientsOrRows(b, loss, std::vector{table});
  EXPECT_TRUE(b.ok()) << b.status();
  return gradients[0];
}

TEST(GradientsOrRows, OfATableAreTheRowsOfAllItsUses) {
  Builder b;
  const GradientOrRows gradient = OfTable(b, false);
  ASSERT_TRUE(gradient.by_rows());
  EXPECT_EQ(b.type(gradient.rows.indices).ToString(), "int64[11]");
  EXPECT_EQ(b.type(gradient.rows.values).ToString(), "float32[11,4]");
  for (const Node& node : b.graph().nodes()) {
    for (const TensorType& type : node.outputs) {
      EXPECT_TRUE(type.shape != Shape({9, 4}) || node.op == "ReadVariable")
          << node.name << " is as large as the table";
    }
  }
}

TEST(GradientsOrRows, AreDenseIfAnotherOpUsesTheTable) {
  Builder b;
  const GradientOrRows gradient = OfTable(b, true);
  ASSERT_FALSE(gradient.by_rows());
  EXPECT_EQ(b.type(gradient.dense).ToString(), "float32[9,4]");
}

TEST(Gradients, WantAFloatScalar) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {3});
  Gradients(b, x, std::vector{x});
  EXPECT_EQ(Message(b.status()), "gradients of x: expected a float scalar, got float32[3]");
}

}  // namespace
}  // namespace tfjob::graph
