#include "operator/local/run/state_dir.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace tfjob::local {
namespace {

// Runs in a new folder, because some paths are relative.
class StateDirTest : public ::testing::Test {
 protected:
  StateDirTest() {
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  ~StateDirTest() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
    unsetenv("TMPDIR");
  }

  const std::filesystem::path before_ = std::filesystem::current_path();
  const std::string folder_ = StrCat(::testing::TempDir(), "state_dir_test.", getpid());
};

TEST_F(StateDirTest, OnlyOneRunUsesAFolder) {
  auto first = StateDir::Create("runs/a", "mnist");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->path(), folder_ + "/runs/a");
  const auto second = StateDir::Create(folder_ + "/runs/a", "other");
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_EQ(Message(second.status()),
            StrCat("--state-dir: another tfjob run is using ", folder_, "/runs/a (it has locked ",
                   folder_,
                   "/runs/a/lock); choose another folder, or wait until that run has "
                   "ended"));
  first = StateDir::Create("runs/b", "mnist");  // unlocks runs/a
  EXPECT_TRUE(StateDir::Create("runs/a", "mnist").ok());
}

TEST_F(StateDirTest, ARelativeTemporaryFolderBecomesAbsolute) {
  std::filesystem::create_directories("tmp");
  setenv("TMPDIR", "tmp", 1);
  const auto made = StateDir::Create("", "mnist");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->path().starts_with(folder_ + "/tmp/tfjob-mnist-")) << made->path();
  EXPECT_TRUE(std::filesystem::is_directory(made->path()));
}

}  // namespace
}  // namespace tfjob::local
