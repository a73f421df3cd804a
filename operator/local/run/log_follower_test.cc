#include "operator/local/run/log_follower.h"

#include <gtest/gtest.h>

#include "runtime/base/file.h"

namespace tfjob::local {
namespace {

TEST(LogFollowerTest, PrintsWholeLinesWithTheirPod) {
  const std::string folder = StrCat(::testing::TempDir(), "follow.", getpid());
  std::vector<std::string> lines;
  LogFollower follower(folder, {}, [&](std::string_view line) { lines.emplace_back(line); });
  follower.Poll();
  ASSERT_TRUE(MakeDirectories(folder + "/job-ps-0").ok());
  const auto write = [&](const std::string& log, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(StrCat(folder, "/job-ps-0/", log), text).ok());
  };
  write("tensorflow.log", "one\ntw");
  write("init.log", "x\n");
  follower.Poll();
  write("tensorflow.log", "one\ntwo\nthree");
  follower.Poll();
  follower.Poll(true);
  follower.Poll(true);
  EXPECT_EQ(lines, (std::vector<std::string>{"job-ps-0/init | x", "job-ps-0 | one",
                                             "job-ps-0 | two", "job-ps-0 | three"}));
}

TEST(LogFollowerTest, LeavesOutWhatEarlierRunsWrote) {
  const std::string folder = StrCat(::testing::TempDir(), "earlier.", getpid());
  EXPECT_EQ(SizesOfLogs(folder), LogSizes());
  ASSERT_TRUE(MakeDirectories(folder + "/job-ps-0").ok());
  const std::string path = folder + "/job-ps-0/tensorflow.log";
  ASSERT_TRUE(WriteFileAtomically(path, "old\n").ok());
  const LogSizes earlier = SizesOfLogs(folder);
  EXPECT_EQ(earlier, (LogSizes{{path, 4}}));
  std::vector<std::string> lines;
  LogFollower follower(folder, earlier, [&](std::string_view line) { lines.emplace_back(line); });
  ASSERT_TRUE(WriteFileAtomically(path, "old\nnew\n").ok());
  follower.Poll(true);
  EXPECT_EQ(lines, std::vector<std::string>{"job-ps-0 | new"});
  EXPECT_EQ(ReadLog(path, earlier), "new\n");
  EXPECT_EQ(ReadLog(path, {{path, 100}}), "");
  EXPECT_EQ(ReadLog(folder + "/none", earlier), "");
}

TEST(LogFollowerTest, GivesTheLastLines) {
  EXPECT_EQ(LastLines("a\nb\nc\n\n", 2), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(LastLines("a\nb", 9), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(LastLines("", 2).empty());
}

TEST(LogFollowerTest, FindsTheLastMetric) {
  const std::string_view log =
      "evaluated step=10 accuracy=0.5 loss=2\nnothing\nevaluated step=20 accuracy=0.88 "
      "loss=1\ntrain accuracy: 1e-3\n";
  EXPECT_EQ(LastMetric(log, "accuracy", ""), "1e-3");
  EXPECT_EQ(LastMetric(log, "accuracy", "evaluated"), "0.88");
  EXPECT_EQ(LastMetric(log, "precision", ""), "");
  EXPECT_EQ(LastMetric("", "accuracy", ""), "");
}

}  // namespace
}  // namespace tfjob::local
