// Tests the API's value types.
#include <gtest/gtest.h>

#include <concepts>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/api/arguments.h"
#include "runtime/api/metrics.h"
#include "runtime/api/status.h"
#include "runtime/api/tensor.h"

namespace tfjob::api {
namespace {

Result<int> Half(int number) {
  if (number % 2 == 0) return number / 2;
  return Status(StatusCode::kInvalidArgument, "expected an even number");
}

TEST(Result, IsAValueOrAnError) {
  const Result<int> two = Half(4);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(*two, 2);
  EXPECT_EQ(two.status().ToString(), "OK");
  const Result<int> none = Half(3);
  EXPECT_FALSE(none.ok());
  EXPECT_EQ(none.status().ToString(), "INVALID_ARGUMENT: expected an even number");
}

TEST(Result, AnOkStatusIsNoResult) {
  const Result<int> none = Status();
  EXPECT_EQ(none.status().code(), StatusCode::kInternal);
}

TEST(ResultDeathTest, ValueOfAnErrorEndsTheProcessWithTheTrainersExitCodes) {
  EXPECT_EXIT((void)Half(3).value(), testing::ExitedWithCode(2), "error: expected an even number");
  EXPECT_EXIT(Status(StatusCode::kUnavailable, "gone").value(), testing::ExitedWithCode(138),
              "error: gone");
  EXPECT_EXIT(Status(StatusCode::kInternal, "bug").value(), testing::ExitedWithCode(1),
              "error: bug");
}

TEST(ResultDeathTest, OnlyAJobThatHasEndedWithoutTheTaskLeavesNothingToRetry) {
  // The code kCancelled alone does not lead to exit code 0, because a callback may also end Fit
  // with kCancelled.
  EXPECT_EXIT(Status(StatusCode::kCancelled, "stop").value(), testing::ExitedWithCode(1),
              "error: stop");
  const Status over = ToPublic(JobOver(Cancelled("the job is over")));
  EXPECT_EXIT(over.value(), testing::ExitedWithCode(0), "the job is over");
  EXPECT_EXIT(ToPublic(FromPublic(over)).value(), testing::ExitedWithCode(0), "");
}

TEST(ResultDeathTest, WritesTheTerminationMessage) {
  const std::string path = testing::TempDir() + "/termination";
  std::ofstream(path) << "";
  setenv("TFJOB_TERMINATION_LOG", path.c_str(), 1);
  EXPECT_EXIT(Status(StatusCode::kInternal, "bug").value(), testing::ExitedWithCode(1), "");
  unsetenv("TFJOB_TERMINATION_LOG");
  std::ifstream in(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "bug");
}

TEST(Tensor, HoldsElementsOfOneType) {
  const Tensor x = Tensor::Of({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}).value();
  EXPECT_EQ(x.dtype(), DType::kFloat32);
  EXPECT_EQ(x.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(x.size(), 6);
  EXPECT_EQ(x.float32()[5], 6);
  EXPECT_EQ(x.bytes().size(), 24U);
}

TEST(Tensor, ACopySharesTheElementsAndACloneDoesNot) {
  Tensor x(DType::kInt64, {2});
  Tensor same = x;
  Tensor other = x.Clone();
  x.int64()[1] = 7;
  EXPECT_EQ(same.int64()[1], 7);
  EXPECT_EQ(other.int64()[1], 0);
  const Tensor column = x.Reshaped({2, 1}).value();
  EXPECT_EQ(column.int64()[1], 7);
}

TEST(Tensor, TakesElementsOfAnyArray) {
  const float three[] = {1, 2, 3};
  EXPECT_EQ(Tensor::Of({3}, three).value().size(), 3);
  const bool flags[] = {true, false};
  const Tensor both = Tensor::Of({2, 1}, flags).value();
  EXPECT_TRUE(both.boolean()[0]);
}

TEST(Tensor, RefusesAnotherNumberOfElements) {
  const auto x = Tensor::Of({2, 2}, std::vector<double>{1, 2, 3});
  EXPECT_EQ(x.status().message(), "an array of shape [2,2] has 4 elements, but 3 are given");
  EXPECT_EQ(Tensor::Of({-1}, std::vector<double>{}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Tensor(DType::kBool, {4}).Reshaped({3}).status().message(),
            "an array of 4 elements cannot have the shape [3]");
}

TEST(TensorDeathTest, ElementsOfAnotherTypeEndTheProcess) {
  const Tensor x(DType::kUInt8, {1});
  EXPECT_EXIT((void)x.float32(), testing::ExitedWithCode(2),
              "an array of uint8 has no elements of type float32");
}

TEST(TensorDeathTest, AnArrayThatMemoryCannotHoldEndsTheProcess) {
  EXPECT_EXIT(Tensor(DType::kFloat32, {int64_t{1} << 43}), testing::ExitedWithCode(2),
              "expected the shape of an array that memory can hold");
}

TEST(Tensor, AnAbsentArrayHasNoElements) {
  const Tensor none;
  EXPECT_FALSE(none.present());
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(none.float32().empty());
  EXPECT_FALSE(none.Clone().present());
}

// Integer arguments reject floating-point numbers, whose fractions would be cut off silently.
static_assert(std::convertible_to<int, OptionalInteger> && std::convertible_to<size_t, Integers>);
static_assert(std::convertible_to<std::nullopt_t, OptionalInteger>);
static_assert(!std::convertible_to<double, OptionalInteger>);
static_assert(!std::convertible_to<bool, OptionalInteger>);
static_assert(!std::convertible_to<double, Integers>);

// Temporary objects must not return references to their contents.
template <typename T>
concept GivesFloats = requires(T&& tensor) { std::forward<T>(tensor).float32(); };
template <typename T>
concept GivesBytes = requires(T&& tensor) { std::forward<T>(tensor).bytes(); };
static_assert(GivesFloats<Tensor&> && GivesFloats<const Tensor&> && !GivesFloats<Tensor>);
static_assert(GivesBytes<const Tensor&> && !GivesBytes<Tensor>);

template <typename T>
concept GivesMembers = requires(T&& result) { std::forward<T>(result).operator->(); };
static_assert(GivesMembers<Result<Tensor>&> && GivesMembers<const Result<Tensor>&>);
static_assert(!GivesMembers<Result<Tensor>> && !GivesMembers<const Result<Tensor>>);

TEST(Temporaries, GiveTheirPartsAway) {
  const auto predict = [] { return Result<Tensor>(Tensor(DType::kFloat32, {2, 3})); };
  int64_t product = 1;
  for (const int64_t size : predict().value().shape()) product *= size;
  EXPECT_EQ(product, 6);
  const auto evaluate = [] {
    return Result<Metrics>(Metrics({{"a metric with a rather long name", 0.5}}));
  };
  std::string names;
  for (const auto& [name, value] : evaluate().value().values()) names += name;
  EXPECT_EQ(names, "a metric with a rather long name");
  const auto fail = [] {
    return Result<int>(Status(StatusCode::kInternal, "a message that is rather long"));
  };
  const Status& status = fail().status();
  const std::string& message = fail().status().message();
  EXPECT_EQ(status.message(), message);
}

TEST(Metrics, ArePrintedInTheirOrder) {
  std::ostringstream out;
  out << Metrics({{"loss", 0.33}, {"accuracy", 0.875}});
  EXPECT_EQ(out.str(), "loss=0.33 accuracy=0.875");
  const Metrics metrics({{"loss", 1}});
  EXPECT_TRUE(metrics.has("loss"));
  EXPECT_NE(metrics["mae"], metrics["mae"]) << "expected NaN for a metric that does not exist";
}

}  // namespace
}  // namespace tfjob::api
