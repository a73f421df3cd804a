// Tests what the self-test prints and returns on a machine without a GPU.
#include "runtime/selftest/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "runtime/exec/cuda_device.h"
#include "runtime/selftest/finding.h"

namespace tfjob::selftest {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(SelfTest, SaysWhyThereIsNoDevice) {
  if (exec::FindCudaDevice().ok()) GTEST_SKIP() << "this machine has a GPU";
  for (const char* name : {"cuda", "cuda/softmax", "cuda/bert-small", "cuda/speed"}) {
    std::ostringstream out;
    const StatusOr<int> code = RunSelfTest(name, out);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(*code, kNoDeviceCode);
    EXPECT_THAT(out.str(), StartsWith("no device: "));
    EXPECT_THAT(out.str(), testing::EndsWith("\n"));
  }
}

TEST(SelfTest, RefusesOtherNames) {
  std::ostringstream out;
  for (const char* name : {"", "cpu", "cuda/", "cuda/cuda", "cudaspeed"}) {
    const Status status = RunSelfTest(name, out).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(Message(status)),
                HasSubstr("expected cuda, or one family such as cuda/elementwise, got "));
  }
  EXPECT_EQ(out.str(), "");
}

TEST(SelfTest, CombinesTheFamilies) {
  const auto run = [](const StatusOr<int>& of_softmax, const StatusOr<int>& of_speed = 0) {
    std::ostringstream out;
    const auto each = [&](const std::string& family) -> StatusOr<int> {
      if (family == "softmax") return of_softmax;
      return family == "speed" ? of_speed : 0;
    };
    const int code = RunAll(each, out);
    return std::pair(code, out.str());
  };
  EXPECT_EQ(run(0).first, kRightCode);
  EXPECT_THAT(run(0).second, testing::EndsWith("The GPU's results are right and fast.\n"));
  EXPECT_EQ(run(0, kSlowCode).first, kSlowCode);
  EXPECT_THAT(run(0, kSlowCode).second, HasSubstr("right, but slow"));
  EXPECT_EQ(run(kWrongCode, kSlowCode).first, kWrongCode);
  const auto [code, table] = run(Internal("the process was killed by signal 11"));
  EXPECT_EQ(code, kWrongCode);
  EXPECT_THAT(table, StartsWith(TableHeader()));
  EXPECT_THAT(
      table,
      HasSubstr(TableRow({"softmax", "", Verdict::kWrong, "the process was killed by signal 11"})));
  EXPECT_THAT(table, testing::EndsWith("The GPU's results are wrong.\n"));
}

// Returns the code and the output of RunAll if the family with this index returns `of_family`.
std::pair<int, std::string> RunAllWith(size_t index, const StatusOr<int>& of_family) {
  std::ostringstream out;
  const int code = RunAll(
      [&](const std::string& family) -> StatusOr<int> {
        return family == Families()[index] ? of_family : kRightCode;
      },
      out);
  return {code, out.str()};
}

TEST(SelfTest, FindsNoDeviceOnlyInTheFirstFamily) {
  EXPECT_EQ(RunAllWith(0, kNoDeviceCode).first, kNoDeviceCode);
  for (const size_t later : {size_t{1}, Families().size() - 1}) {
    const auto [code, table] = RunAllWith(later, kNoDeviceCode);
    EXPECT_EQ(code, kWrongCode);
    EXPECT_THAT(table, HasSubstr("the GPU is lost: earlier families have used it"));
    EXPECT_THAT(table, testing::EndsWith("The GPU's results are wrong.\n"));
  }
}

// The trainer exits with these codes if a flag is wrong, or if it expects a restart to help.
TEST(SelfTest, CountsOtherExitCodesAsWrong) {
  for (const int other : {2, 126, 138}) {
    const auto [code, table] = RunAllWith(3, other);
    EXPECT_EQ(code, kWrongCode);
    EXPECT_THAT(table, HasSubstr(TableRow({Families()[3], "", Verdict::kWrong,
                                           StrCat("the process exited with code ", other)})));
  }
}

TEST(SelfTest, StopsAfterAProcessThatCannotBeKilled) {
  const auto [code, table] = RunAllWith(2, Unavailable("cannot be killed"));
  EXPECT_EQ(code, kWrongCode);
  EXPECT_THAT(table, HasSubstr(StrCat("The families after ", Families()[2], " were not run.\n")));
  std::vector<std::string> run;
  std::ostringstream out;
  const auto unavailable = [&](const std::string& family) -> StatusOr<int> {
    run.push_back(family);
    return Unavailable("cannot be killed");
  };
  EXPECT_EQ(RunAll(unavailable, out), kWrongCode);
  EXPECT_EQ(run, std::vector{Families()[0]});
}

TEST(SelfTest, HasDistinctFamilies) {
  std::vector<std::string> families = Families();
  EXPECT_EQ(families.back(), "speed");
  std::ranges::sort(families);
  EXPECT_EQ(std::ranges::adjacent_find(families), families.end());
}

TEST(Findings, DetermineTheExitCode) {
  const Finding right{.family = "a"}, slow{.family = "b", .verdict = Verdict::kSlow},
      wrong{.family = "c", .verdict = Verdict::kWrong};
  EXPECT_EQ(ExitCodeOf({}), 0);
  EXPECT_EQ(ExitCodeOf(std::vector{right, right}), 0);
  EXPECT_EQ(ExitCodeOf(std::vector{right, slow}), 3);
  EXPECT_EQ(ExitCodeOf(std::vector{wrong, slow, right}), 1);
}

TEST(Findings, AreRowsOfATable) {
  EXPECT_EQ(TableRow({"softmax", "12 comparisons", Verdict::kWrong, "1 differs"}),
            "softmax            12 comparisons                     WRONG  1 differs\n");
  EXPECT_EQ(TableHeader(), "family             check                              result \n");
}

TEST(Speed, IsJudgedByThatOfACopy) {
  const SpeedCase speed_case = SpeedCases(1 << 12)[0];
  EXPECT_EQ(speed_case.bytes(), 2 * 4 * (1 << 12));
  const Finding fast = JudgeBandwidth(speed_case, 0.61e12, 1e12);
  EXPECT_EQ(fast.verdict, Verdict::kRight);
  EXPECT_EQ(fast.check, "Exp float32[4,1024]");
  EXPECT_EQ(fast.detail, "610 GB/s, 61 % of a copy");
  EXPECT_EQ(JudgeBandwidth(speed_case, 0.59e12, 1e12).verdict, Verdict::kSlow);
}

// An Adam step reads the gradient, the variable and two slots, and writes all but the gradient.
TEST(Speed, CountsTheBytesOfAnUpdate) {
  EXPECT_EQ(SpeedCases(1 << 12).back().bytes(), 28 * (1 << 12) + 8);
}

}  // namespace
}  // namespace tfjob::selftest
