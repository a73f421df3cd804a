#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

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

TEST(Time, HasFourDigitsForTheYear) {
  const std::string first = "0001-01-01T00:00:00Z";  // Go's zero time
  const StatusOr<Time> time = ParseTime(first);
  ASSERT_TRUE(time.ok()) << time.status();
  EXPECT_EQ(FormatTime(*time), first);
  EXPECT_TRUE(ParseTime("9999-12-31T23:59:59.999999Z").ok());
  for (const char* text :
       {"infinite-future", " 2026-11-21T09:30:00Z", "1-01-01T00:00:00Z", "-001-01-01T00:00:00Z",
        "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "292277026596-01-01T00:00:00Z"}) {
    EXPECT_EQ(ParseTime(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
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

// In a folder to which other users may write, an attacker could place a link to any file under a
// guessed name.
TEST(File, TemporaryFilesCannotBeGuessedAndFollowNoLinks) {
  const std::string folder = testing::TempDir() + "/temporary_file_test";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(MakeDirectories(folder).ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/victim", "precious").ok());
  std::filesystem::create_symlink(folder + "/victim", folder + "/link");
  EXPECT_TRUE(absl::IsAlreadyExists(RealFileSystem().Create(folder + "/link").status()));
  EXPECT_EQ(*ReadFile(folder + "/victim"), "precious");
  EXPECT_NE(TemporaryPath("a"), TemporaryPath("a"));
  EXPECT_TRUE(IsTemporaryName(TemporaryPath("a")));
  EXPECT_TRUE(IsTemporaryName("a.tmp.17.2"));
  for (const char* name : {"a", ".tmp.12", "a.tmp.", "a.tmp.txt", "a.temporary.1"})
    EXPECT_FALSE(IsTemporaryName(name)) << name;
}

TEST(File, AFailedAppendLeavesNoPartOfItself) {
  const std::string path = testing::TempDir() + "/append_test";
  std::filesystem::remove(path);
  auto file = RealFileSystem().Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("12345").ok());
  // Limit the file's size to 8 bytes. The second write reaches this limit partway through.
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 8, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE((*file)->Append("6789abcdef").ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(*ReadFile(path), "12345");
  ASSERT_TRUE((*file)->Append("6").ok());
  EXPECT_EQ(*ReadFile(path), "123456");
}

}  // namespace
}  // namespace tfjob
