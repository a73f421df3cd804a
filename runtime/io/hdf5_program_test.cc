#include "runtime/io/hdf5_program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "runtime/base/file.h"

namespace tfjob::io {
namespace {

// Simulates an installation of the programs and the library in a temporary folder.
class InstalledHdf5ProgramTest : public ::testing::Test {
 protected:
  InstalledHdf5ProgramTest() {
    std::filesystem::remove_all(root_);
    for (const char* folder : {"home", "usr/bin", "usr/lib/x86_64-linux-gnu"})
      std::filesystem::create_directories(root_ + folder);
  }

  void Add(const std::string& path, mode_t mode = 0755) const {
    ASSERT_TRUE(WriteFileAtomically(root_ + path, "").ok());
    ASSERT_EQ(chmod((root_ + path).c_str(), mode), 0);
  }
  // Returns the path of the program for a process in `home`, relative to the root.
  std::string Found(const std::string& code) const {
    return InstalledHdf5Program(root_ + "home", root_ + code).substr(root_.size());
  }

  const std::string root_ = testing::TempDir() + "/installed/";
};

TEST_F(InstalledHdf5ProgramTest, IsInTheFolderBinOfTheLibrarysPrefix) {
  Add("usr/bin/tfjob-hdf5");
  EXPECT_EQ(Found("usr/lib"), "usr/bin/tfjob-hdf5");
  EXPECT_EQ(Found("usr/lib/x86_64-linux-gnu"), "usr/bin/tfjob-hdf5");
  EXPECT_EQ(Found("usr/bin"), "usr/bin/tfjob-hdf5");
}

TEST_F(InstalledHdf5ProgramTest, BesideTheProcesssProgramComesFirst) {
  Add("usr/bin/tfjob-hdf5");
  Add("home/tfjob-hdf5");
  EXPECT_EQ(Found("usr/lib"), "home/tfjob-hdf5");
}

TEST_F(InstalledHdf5ProgramTest, IfThereIsNoneItWouldBeBesideTheProcesssProgram) {
  EXPECT_EQ(Found("usr/lib"), "home/tfjob-hdf5");
}

TEST_F(InstalledHdf5ProgramTest, AFileThatCannotBeRunIsSkipped) {
  Add("home/tfjob-hdf5", 0644);
  Add("usr/bin/tfjob-hdf5");
  EXPECT_EQ(Found("usr/lib"), "usr/bin/tfjob-hdf5");
}

// If the code's folder is unknown, the result must not be a path relative to the current folder.
TEST_F(InstalledHdf5ProgramTest, NoFolderIsRelative) {
  std::filesystem::create_directories("bin");
  ASSERT_TRUE(WriteFileAtomically("bin/tfjob-hdf5", "").ok());
  ASSERT_EQ(chmod("bin/tfjob-hdf5", 0755), 0);
  EXPECT_EQ(InstalledHdf5Program(root_ + "home", ""), root_ + "home/tfjob-hdf5");
}

}  // namespace
}  // namespace tfjob::io
