// Checks the structure of gradients, and the errors. runtime/exec/gradients_test.cc, where kernels
// are available, compares the values of gradients with central differences.
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

TEST(Gradients, WantAFloatScalar) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {3});
  Gradients(b, x, std::vector{x});
  EXPECT_EQ(Message(b.status()), "gradients of x: expected a float scalar, got float32[3]");
}

}  // namespace
}  // namespace tfjob::graph
