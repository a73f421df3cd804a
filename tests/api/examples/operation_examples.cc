// Examples of ops.h.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/api/programs.h"

namespace {

using namespace tfjob;  // NOLINT: the examples of the reference omit the namespace

// Returns the values of `y` for two examples of `x`: [1, -2, 3] and [0.5, 4, -1].
std::vector<float> ValuesOf(const Symbol& x, const Symbol& y) {
  const Session session(Strategy::OneDevice(), {.threads = 1});
  Result<CompiledModel> model = session.Compile(Functional(x, ops::Cast(y, "float32")), {});
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  const auto examples = Tensor::Of({2, 3}, std::vector<float>{1, -2, 3, 0.5F, 4, -1}).value();
  const Result<Tensor> values = model->Predict(examples);
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return {};
  const Tensor tensor = *values;
  return {tensor.float32().begin(), tensor.float32().end()};
}

void Expect(const Symbol& x, const Symbol& y, const std::vector<float>& expected) {
  const std::vector<float> values = ValuesOf(x, y);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
}

TEST(OperationExamples, Operators) {
  const Symbol x = Input{.shape = {3}};
  // [operator+, operator-, operator*, operator/]
  const Symbol y = 2 * x + 1 - x / 4;  // [2.75, -2.5, 6.25] for [1, -2, 3]
  // [end]
  Expect(x, y, {2.75F, -2.5F, 6.25F, 1.875F, 8, -0.75F});
  // [operator<, operator<=, operator>, operator>=]
  const Symbol inside = ops::LogicalAnd(x > -2, x < 3);    // [true, false, false]
  const Symbol closed = ops::LogicalAnd(x >= -2, x <= 3);  // [true, true, true]
  // [end]
  Expect(x, inside, {1, 0, 0, 1, 0, 1});
  Expect(x, closed, {1, 1, 1, 1, 0, 1});
  // [Operand, Operand::symbol, Operand::number, Operand::integer]
  const auto describe = [](const Operand& operand) {
    if (operand.symbol()) return std::string("a value");
    return std::string(operand.integer() ? "the integer " : "the number ") +
           std::to_string(operand.number());
  };
  const std::string text = describe(x) + ", " + describe(2);  // "a value, the integer 2.000000"
  // [end]
  EXPECT_EQ(text, "a value, the integer 2.000000");
}

TEST(OperationExamples, Elementwise) {
  const Symbol x = Input{.shape = {3}};
  // [ops::Power, ops::Sqrt, ops::Rsqrt, ops::Square]
  const Symbol same = ops::Power(x, 2) * ops::Rsqrt(ops::Square(x)) - ops::Sqrt(x * x);  // 0
  // [end]
  Expect(x, same, {0, 0, 0, 0, 0, 0});
  // [ops::Maximum, ops::Minimum, ops::Clip]
  const Symbol bounded = ops::Minimum(ops::Maximum(x, -1), 2);  // the same as Clip(x, -1, 2)
  const Symbol difference = bounded - ops::Clip(x, -1, 2);      // 0
  // [end]
  Expect(x, bounded, {1, -1, 2, 0.5F, 2, -1});
  Expect(x, difference, {0, 0, 0, 0, 0, 0});
  // [ops::Equal, ops::NotEqual, ops::Cast]
  const Symbol ones = ops::Cast(ops::Equal(x, 1), "float32");       // [1, 0, 0] for [1, -2, 3]
  const Symbol others = ops::Cast(ops::NotEqual(x, 1), "float32");  // [0, 1, 1]
  // [end]
  Expect(x, ones, {1, 0, 0, 0, 0, 0});
  Expect(x, others, {0, 1, 1, 1, 1, 1});
  // [ops::LogicalAnd, ops::LogicalOr, ops::LogicalNot]
  const Symbol outside = ops::LogicalOr(x < 0, x > 2);
  const Symbol again = ops::LogicalNot(ops::LogicalAnd(x >= 0, x <= 2));  // the same
  // [end]
  Expect(x, outside, {0, 1, 1, 0, 1, 1});
  Expect(x, again, {0, 1, 1, 0, 1, 1});
  // [ops::Where, ops::Abs, ops::ZerosLike, ops::OnesLike]
  const Symbol sign = ops::Where(x > 0, ops::OnesLike(x), ops::ZerosLike(x) - 1);
  const Symbol zero = sign * x - ops::Abs(x);
  // [end]
  Expect(x, sign, {1, -1, 1, 1, 1, -1});
  Expect(x, zero, {0, 0, 0, 0, 0, 0});
  // [ops::Exp, ops::Log]
  const Symbol x_again = ops::Log(ops::Exp(x));
  // [end]
  Expect(x, x_again, {1, -2, 3, 0.5F, 4, -1});
  // [ops::Sin, ops::Cos]
  const Symbol one = ops::Square(ops::Sin(x)) + ops::Square(ops::Cos(x));  // 1
  // [end]
  Expect(x, one, {1, 1, 1, 1, 1, 1});
  // [ops::Erf]
  const Symbol normal_cdf = 0.5 * (1 + ops::Erf(x * 0.70710678));
  // [end]
  Expect(x, normal_cdf, {0.8413447F, 0.0227501F, 0.9986501F, 0.6914625F, 0.9999683F, 0.1586553F});
}

TEST(OperationExamples, Activations) {
  const Symbol x = Input{.shape = {3}};
  // [ops::Relu, ops::LeakyRelu, ops::Elu]
  const Symbol positive = ops::Relu(x);         // [1, 0, 3] for [1, -2, 3]
  const Symbol leaky = ops::LeakyRelu(x, 0.1);  // [1, -0.2, 3]
  const Symbol smooth = ops::Elu(x);            // [1, exp(-2) - 1, 3]
  // [end]
  Expect(x, positive, {1, 0, 3, 0.5F, 4, 0});
  Expect(x, leaky, {1, -0.2F, 3, 0.5F, 4, -0.1F});
  Expect(x, smooth, {1, std::exp(-2.F) - 1, 3, 0.5F, 4, std::exp(-1.F) - 1});
  // [ops::Sigmoid, ops::LogSigmoid, ops::Tanh, ops::Softplus]
  const Symbol probability = ops::Sigmoid(x);                  // 1 / (1 + exp(-x))
  const Symbol zero = ops::LogSigmoid(x) + ops::Softplus(-x);  // log(probability) - the same
  const Symbol none = ops::Tanh(x) - (2 * ops::Sigmoid(2 * x) - 1);
  // [end]
  EXPECT_NEAR(ValuesOf(x, probability)[0], 0.7310586, 1e-5);
  for (const Symbol& difference : {zero, none}) Expect(x, difference, {0, 0, 0, 0, 0, 0});
  // [ops::Silu, ops::Gelu]
  const Symbol gated = ops::Silu(x) - x * ops::Sigmoid(x);  // 0
  const Symbol gelu = ops::Gelu(x, false);                  // x times the normal distribution
  // [end]
  Expect(x, gated, {0, 0, 0, 0, 0, 0});
  EXPECT_NEAR(ValuesOf(x, gelu)[0], 0.8413447, 1e-5);
  // [ops::Softmax, ops::LogSoftmax]
  const Symbol probabilities = ops::Softmax(x);                       // sums to 1
  const Symbol equal = ops::Log(probabilities) - ops::LogSoftmax(x);  // 0
  // [end]
  Expect(x, ops::Sum(probabilities, {1}), {1, 1});
  Expect(x, equal, {0, 0, 0, 0, 0, 0});
}

TEST(OperationExamples, Reductions) {
  const Symbol x = Input{.shape = {3}};
  // [ops::Sum, ops::Mean]
  const Symbol sum = ops::Sum(x, {-1});                 // one number for each example
  const Symbol centred = x - ops::Mean(x, {-1}, true);  // keepdims, so that the ranks are equal
  // [end]
  Expect(x, sum, {2, 3.5F});
  Expect(x, ops::Sum(centred, {1}), {0, 0});
  // [ops::Max, ops::Min]
  const Symbol spread = ops::Max(x, {-1}) - ops::Min(x, {-1});
  // [end]
  Expect(x, spread, {5, 5});
  // [ops::Var, ops::Std]
  const Symbol zero = ops::Var(x, {-1}) - ops::Square(ops::Std(x, {-1}));
  // [end]
  Expect(x, zero, {0, 0});
  // [ops::LogSumExp]
  const Symbol normalizer = ops::LogSumExp(x, {-1});  // log(Σ exp(x)), without overflow
  // [end]
  Expect(x, normalizer, {3.1328453F, 4.0362697F});
  // [ops::Argmax]
  const Symbol best = ops::Argmax(x);  // the index of the largest value: 2 for [1, -2, 3]
  // [end]
  Expect(x, best, {2, 1});
}

TEST(OperationExamples, Shapes) {
  const Symbol x = Input{.shape = {3}};
  // [ops::Reshape, ops::Transpose]
  const Symbol column = ops::Reshape(x, {-1, 3, 1});     // [batch, 3, 1]
  const Symbol row = ops::Transpose(column, {0, 2, 1});  // [batch, 1, 3]
  // [end]
  Expect(x, row, {1, -2, 3, 0.5F, 4, -1});
  // [ops::ExpandDims, ops::Squeeze]
  const Symbol wide = ops::ExpandDims(x, 1);      // [batch, 1, 3]
  const Symbol narrow = ops::Squeeze(wide, {1});  // [batch, 3]
  // [end]
  Expect(x, narrow, {1, -2, 3, 0.5F, 4, -1});
  // [ops::Concatenate, ops::Stack]
  const Symbol longer = ops::Concatenate({x, 2 * x});  // [batch, 6]
  const Symbol pairs = ops::Stack({x, 2 * x}, 2);      // [batch, 3, 2]
  // [end]
  Expect(x, longer, {1, -2, 3, 2, -4, 6, 0.5F, 4, -1, 1, 8, -2});
  Expect(x, pairs, {1, 2, -2, -4, 3, 6, 0.5F, 1, 4, 8, -1, -2});
  // [ops::Flip]
  const Symbol reversed = ops::Flip(x, {1});  // [3, -2, 1] for [1, -2, 3]
  // [end]
  Expect(x, reversed, {3, -2, 1, -1, 4, 0.5F});
  // [ops::OneHot]
  const Symbol choice = ops::OneHot(ops::Argmax(x), 3);  // [0, 0, 1] for [1, -2, 3]
  // [end]
  Expect(x, choice, {0, 0, 1, 0, 1, 0});
}

TEST(OperationExamples, Keys) {
  const Symbol x = Input{.shape = {3}};
  // [ops::GetItem, ops::Key, ops::Key::All, ops::Key::Range]
  const Symbol first = ops::GetItem(x, {ops::Key::All(), 0});                      // x[:, 0]
  const Symbol rest = ops::GetItem(x, {ops::Key::All(), ops::Key::Range(1, {})});  // x[:, 1:]
  // [end]
  Expect(x, first, {1, 0.5F});
  Expect(x, rest, {-2, 3, 4, -1});
  // [ops::Key::Ellipsis, ops::Key::NewAxis]
  const Symbol column = ops::GetItem(x, {ops::Key::Ellipsis(), ops::Key::NewAxis()});
  // [end]
  Expect(x, ops::Squeeze(column, {2}), {1, -2, 3, 0.5F, 4, -1});
  // [ops::Key::kind, ops::Key::index, ops::Key::start, ops::Key::stop, ops::Key::step]
  const ops::Key key = ops::Key::Range(2, 8, 3);
  const bool is_range = key.kind() == ops::Key::Kind::kRange;
  const int64_t length = (*key.stop() - *key.start()) / *key.step();  // 2
  const int64_t index = ops::Key(5).index();                          // 5
  // [end]
  EXPECT_TRUE(is_range);
  EXPECT_EQ(length + index, 7);
}

TEST(OperationExamples, Products) {
  const Symbol x = Input{.shape = {3}};
  // [ops::Matmul]
  const Symbol row = ops::ExpandDims(x, 1), column = ops::ExpandDims(x, 2);
  const Symbol length = ops::Matmul(row, column);  // [batch, 1, 1]
  // [end]
  Expect(x, length, {14, 17.25F});
  // [ops::Einsum]
  const Symbol outer = ops::Einsum("bi,bj->bij", x, x);  // [batch, 3, 3]
  // [end]
  Expect(x, ops::Sum(outer, {1, 2}), {4, 12.25F});
}

}  // namespace
