// Tests the operations of ops.h in functional models.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/api/programs.h"

namespace {

namespace ops = tj::ops;

// Returns the results of a function for two examples, [1, -2, 3] and [0.5, 4, -1].
std::vector<float> ValuesOf(const std::function<tj::Symbol(const tj::Symbol&)>& function) {
  const tj::Symbol x = tj::Input{.shape = {3}};
  const auto compiled = tj::Session(tj::Strategy::OneDevice(), {.threads = 1})
                            .Compile(tj::Functional(x, function(x)), {});
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return {};
  tj::CompiledModel model = *compiled;
  const auto examples = tj::Tensor::Of({2, 3}, std::vector<float>{1, -2, 3, 0.5F, 4, -1}).value();
  const auto made = model.Predict(examples);
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  const tj::Tensor values = *made;
  return {values.float32().begin(), values.float32().end()};
}

void Expect(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
}

TEST(Ops, ComputesWithValuesAndNumbers) {
  using S = tj::Symbol;
  Expect(ValuesOf([](const S& x) { return 2 * x + 1; }), {3, -3, 7, 2, 9, -1});
  Expect(ValuesOf([](const S& x) { return 1 - x / 2; }), {0.5F, 2, -0.5F, 0.75F, -1, 1.5F});
  Expect(ValuesOf([](const S& x) { return -x * x; }), {-1, -4, -9, -0.25F, -16, -1});
  Expect(ValuesOf([](const S& x) { return ops::Power(x, 2); }), {1, 4, 9, 0.25F, 16, 1});
  Expect(ValuesOf([](const S& x) { return ops::Maximum(x, 0.0); }), {1, 0, 3, 0.5F, 4, 0});
  Expect(ValuesOf([](const S& x) { return ops::Where(x > 0, x, -1.0); }), {1, -1, 3, 0.5F, 4, -1});
  Expect(ValuesOf([](const S& x) { return ops::Cast(1 <= x, "float32"); }), {1, 0, 1, 0, 1, 0});
  Expect(ValuesOf([](const S& x) { return ops::Sqrt(ops::Abs(x) + 1.25); }),
         {1.5F, 1.8027756F, 2.0615528F, 1.3228757F, 2.2912878F, 1.5F});
  Expect(ValuesOf([](const S& x) { return ops::Clip(x, -1, 1); }), {1, -1, 1, 0.5F, 1, -1});
  Expect(ValuesOf([](const S& x) { return ops::Exp(ops::Log(ops::Square(x))); }),
         {1, 4, 9, 0.25F, 16, 1});
}

TEST(Ops, ReducesAndRearranges) {
  using S = tj::Symbol;
  Expect(ValuesOf([](const S& x) { return ops::Sum(x, {1}); }), {2, 3.5F});
  Expect(ValuesOf([](const S& x) { return ops::Mean(x, {-1}, true); }), {2 / 3.0F, 3.5F / 3});
  Expect(ValuesOf([](const S& x) { return ops::Max(x, {1}) - ops::Min(x, {1}); }), {5, 5});
  Expect(ValuesOf([](const S& x) { return ops::Reshape(x, {-1, 3, 1}); }), {1, -2, 3, 0.5F, 4, -1});
  Expect(ValuesOf([](const S& x) { return ops::Concatenate({x, 2 * x}); }),
         {1, -2, 3, 2, -4, 6, 0.5F, 4, -1, 1, 8, -2});
  Expect(ValuesOf([](const S& x) { return ops::Squeeze(ops::Stack({x}, 1), {1}); }),
         {1, -2, 3, 0.5F, 4, -1});
  Expect(ValuesOf([](const S& x) { return ops::Flip(x, {1}); }), {3, -2, 1, -1, 4, 0.5F});
  Expect(ValuesOf([](const S& x) {
           return ops::GetItem(x, {ops::Key::All(), ops::Key::Range(0, {}, 2)});
         }),
         {1, 3, 0.5F, -1});
  Expect(ValuesOf([](const S& x) { return ops::GetItem(x, {ops::Key::Ellipsis(), 1}); }), {-2, 4});
  Expect(ValuesOf([](const S& x) {
           return ops::Einsum("ij,ik->ijk",
                              ops::GetItem(x, {ops::Key::All(), ops::Key::Range(0, 2)}),
                              ops::GetItem(x, {ops::Key::All(), ops::Key::Range(2, {})}));
         }),
         {3, -6, -0.5F, -4});
  Expect(ValuesOf([](const S& x) { return ops::OneHot(ops::Argmax(x), 3); }), {0, 0, 1, 0, 1, 0});
  Expect(ValuesOf([](const S& x) { return ops::Sum(ops::Softmax(x), {1}); }), {1, 1});
}

TEST(Ops, AreThoseOfKeras) {
  const tj::Symbol x = tj::Input{.shape = {3}};
  const tj::Model model = tj::Functional(x, ops::Tanh(x + x) * 0.5);
  ASSERT_TRUE(model.status().ok()) << model.status();
  const std::string json = model.ToJson().value();
  for (const char* part : {"keras.src.ops.numpy", "\"Tanh\"", "\"Add\"", "\"Multiply\"", "0.5"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

TEST(Ops, ErrorsNameTheFunction) {
  const tj::Symbol x = tj::Input{.shape = {3}};
  const auto error = [&](const tj::Symbol& y) { return tj::Functional(x, y).status().message(); };
  EXPECT_NE(error(x + INFINITY).find("expected a finite number"), std::string::npos);
  EXPECT_NE(error(ops::Sum(x)).find("Sum"), std::string::npos) << error(ops::Sum(x));
  EXPECT_NE(error(ops::Cast(x, "float7")).find("float7"), std::string::npos);
  EXPECT_NE(error(ops::Softmax(x, 0)).find("not along the batch"), std::string::npos);
  EXPECT_NE(error(ops::Concatenate({})).find("at least one value"), std::string::npos);
}

}  // namespace
