#include "runtime/strategy/model/number_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/exec/device.h"
#include "runtime/state/run_failure.h"

namespace tfjob::strategy {
namespace {

using config::OnNonFinite;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<state::Variable>& Variables() {
  static const std::vector<state::Variable> variables = {{.name = "a", .shape = {2}},
                                                         {.name = "b", .shape = {2}}};
  return variables;
}

// Returns the verdict about a batch with these gradients: "applied", "skipped", or the error up to
// its second colon.
std::string Judge(NumberCheck& check, double loss, std::vector<float> a, std::vector<float> b) {
  check.Begin();
  check.Contribution(1, std::as_bytes(std::span(b)));  // the last layer's gradient comes first
  check.Contribution(0, std::as_bytes(std::span(a)));
  const StatusOr<bool> verdict = check.Verdict(loss, 7);
  if (verdict.ok()) return *verdict ? "applied" : "skipped";
  EXPECT_TRUE(state::IsRunFailure(verdict.status()));
  const std::string message(Message(verdict.status()));
  return message.substr(0, message.find(": ", message.find(": ") + 1));
}

TEST(NumberCheck, NamesTheStepAndTheFirstTensorInTheOrderOfTheModel) {
  NumberCheck check(OnNonFinite::kFail, "worker 1", Variables(), nullptr);
  EXPECT_EQ(Judge(check, 1, {1, 2}, {3, 4}), "applied");
  EXPECT_EQ(Judge(check, 1, {1, kNaN}, {kNaN, 4}),
            "worker 1, step 7: the gradient of a contains NaN or infinity");
  EXPECT_EQ(Judge(check, 1, {1, 2}, {3, kNaN}),
            "worker 1, step 7: the gradient of b contains NaN or infinity");
  EXPECT_EQ(Judge(check, kNaN, {1, kNaN}, {3, 4}), "worker 1, step 7: the loss is NaN");
  EXPECT_EQ(Judge(check, -kInfinity, {1, 2}, {3, 4}), "worker 1, step 7: the loss is infinite");
  NumberCheck alone(OnNonFinite::kFail, "", Variables(), nullptr);
  EXPECT_EQ(Judge(alone, kNaN, {1, 2}, {3, 4}), "step 7: the loss is NaN");
}

TEST(NumberCheck, TellsWhetherAGradientMayBeSent) {
  NumberCheck check(OnNonFinite::kFail, "", Variables(), nullptr);
  const std::vector<float> good = {1, 2}, bad = {1, kNaN};
  check.Begin();
  EXPECT_TRUE(check.Contribution(1, std::as_bytes(std::span(good))));
  EXPECT_FALSE(check.Contribution(0, std::as_bytes(std::span(bad))));
  EXPECT_FALSE(check.Contribution(0, std::as_bytes(std::span(good))))
      << "nothing follows a bad one";
  check.Begin();
  EXPECT_TRUE(check.Contribution(0, std::as_bytes(std::span(good))));
}

TEST(NumberCheck, SkipsUntilTooManyBatchesInARow) {
  NumberCheck check(OnNonFinite::kSkip, "", Variables(), nullptr);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kMaxSkippedInARow; ++i)
      ASSERT_EQ(Judge(check, kNaN, {1, 2}, {3, 4}), "skipped");
    EXPECT_EQ(Judge(check, 1, {1, 2}, {3, 4}), "applied");
  }
  for (int i = 0; i < kMaxSkippedInARow; ++i) Judge(check, 1, {kNaN, 2}, {3, 4});
  EXPECT_EQ(Judge(check, 1, {kNaN, 2}, {3, 4}),
            "step 7: the gradient of a contains NaN or infinity, as in the 100 batches before, "
            "which were skipped");
}

TEST(NumberCheck, ContinueChecksNothing) {
  NumberCheck check(OnNonFinite::kContinue, "", Variables(), nullptr);
  EXPECT_EQ(Judge(check, kNaN, {kNaN, 2}, {3, 4}), "applied");
}

TEST(NumberCheck, LooksAtUpdatedVariablesButNotAtTheirPadding) {
  variables::VariableStore store([](DType, const Shape&) { return int64_t{6}; });
  variables::Variable& matrix =
      **store.Create("b", DType::kFloat32, {3, 4}, variables::Kind::kTrainable);
  auto* values = static_cast<float*>(matrix.data());
  const auto judge = [&] {
    NumberCheck check(OnNonFinite::kFail, "", Variables(), nullptr);
    check.Begin();
    check.Updated(1, matrix);
    const StatusOr<bool> verdict = check.Verdict(1, 7);
    return verdict.ok() ? "applied" : std::string(Message(verdict.status()).substr(0, 47));
  };
  values[4] = values[11] = kNaN;  // padding of the first two rows
  EXPECT_EQ(judge(), "applied");
  for (size_t i : {0u, 3u, 6u, 15u}) {
    values[i] = kNaN;
    EXPECT_EQ(judge(), "step 7: b contains NaN or infinity after its up") << i;
    values[i] = 0;
  }
}

class NumberCheckOnDevice : public testing::TestWithParam<const char*> {};

TEST_P(NumberCheckOnDevice, ChecksTheRowsThatAnUpdateHasChanged) {
  variables::VariableStore store([](DType, const Shape& shape) { return shape.dim(-1) + 3; },
                                 exec::DeviceByName(GetParam())->runtime);
  variables::Variable* table =
      *store.Create("a", DType::kFloat32, {4, 2}, variables::Kind::kTrainable);
  ASSERT_TRUE(table->FromTensor(Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, kNaN, 7, 8})).ok());
  NumberCheck check(OnNonFinite::kFail, "", Variables(), nullptr);
  const auto verdict = [&](std::vector<int64_t> indices) {
    check.Begin();
    check.UpdatedRows(0, *table, indices);
    return std::string(Message(check.Verdict(1, 7).status()));
  };
  EXPECT_EQ(verdict({0, 1, 3}), "");
  EXPECT_EQ(verdict({0, -1, -1}), "");
  EXPECT_TRUE(
      verdict({0, 2, -1}).starts_with("step 7: a contains NaN or infinity after its update"));
  check.Begin();
  check.Updated(0, *table);
  EXPECT_FALSE(check.Verdict(1, 7).ok());
  ASSERT_TRUE(table->FromTensor(Tensor(DType::kFloat32, {4, 2})).ok());
  check.Begin();
  check.Updated(0, *table);
  EXPECT_TRUE(check.Verdict(1, 7).ok());
}

INSTANTIATE_TEST_SUITE_P(, NumberCheckOnDevice, testing::Values("cpu", "fake"));

}  // namespace
}  // namespace tfjob::strategy
