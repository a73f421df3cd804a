#include <gtest/gtest.h>

#include "runtime/base/backoff.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"

namespace tfjob {
namespace {

TEST(Time, FormatsAndParsesAsKubernetesDoes) {
  StatusOr<Time> time = ParseTime("2026-11-21T09:30:00Z");
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_EQ(FormatTime(*time), "2026-11-21T09:30:00Z");
  EXPECT_EQ(FormatMicroTime(*time + 12ms), "2026-11-21T09:30:00.012000Z");
  EXPECT_EQ(*ParseTime("2026-11-21T10:30:00+01:00"), *time);
  EXPECT_EQ(TruncateToSeconds(*time + 999ms), *time);
  EXPECT_EQ(FormatTime(Time()), "");
  EXPECT_FALSE(ParseTime("yesterday").ok());
}

TEST(Backoff, DoublesUpToItsMaximum) {
  BackoffPolicy policy{.initial = 1s, .maximum = 300s};
  EXPECT_EQ(BackoffDelay(policy, 0), 0s);
  EXPECT_EQ(BackoffDelay(policy, 1), 1s);
  EXPECT_EQ(BackoffDelay(policy, 3), 4s);
  EXPECT_EQ(BackoffDelay(policy, 1000), 300s);
}

TEST(File, WritesWholeFilesAndNamesThePathOfFailures) {
  const std::string folder = testing::TempDir() + "/file_test";
  ASSERT_TRUE(MakeDirectories(folder).ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/a", "one").ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/a", "two").ok());
  EXPECT_EQ(*ReadFile(folder + "/a"), "two");
  EXPECT_EQ(*ListDirectory(folder), std::vector<std::string>{"a"});
  EXPECT_EQ(Message(ReadFile("/nowhere/x").status()), "open /nowhere/x: No such file or directory");
}

}  // namespace
}  // namespace tfjob
