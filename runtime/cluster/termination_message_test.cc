#include "runtime/cluster/termination_message.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "runtime/base/file.h"
#include "runtime/base/status.h"

namespace tfjob::cluster {
namespace {

std::string NewFile(const std::string& content) {
  const std::string file = ::testing::TempDir() + "/termination-log";
  std::ofstream(file) << content;
  return file;
}

TEST(TerminationMessage, ReplacesTheFileWithOneLine) {
  const std::string file = NewFile("what an earlier run of the container left, which is longer");
  WriteTerminationMessage(file, "config.yaml: 2 errors:\nbatch_size: 0\nsteps: -1\n");
  EXPECT_EQ(*ReadFile(file), "config.yaml: 2 errors:; batch_size: 0; steps: -1");
  WriteTerminationMessage(file, std::string(10000, 'x'));
  EXPECT_EQ(ReadFile(file)->size(), 4096u);
}

TEST(TerminationMessage, IsNotWrittenOutsideAContainer) {
  const std::string file = ::testing::TempDir() + "/no-such-file";
  WriteTerminationMessage(file, "x");
  EXPECT_TRUE(absl::IsNotFound(ReadFile(file).status()));
}

TEST(TerminationMessage, HasTheDefaultPathUnlessAnotherIsSet) {
  EXPECT_EQ(TerminationLog(), "/dev/termination-log");
  setenv("TFJOB_TERMINATION_LOG", "/x/y", 1);
  EXPECT_EQ(TerminationLog(), "/x/y");
  unsetenv("TFJOB_TERMINATION_LOG");
}

}  // namespace
}  // namespace tfjob::cluster
