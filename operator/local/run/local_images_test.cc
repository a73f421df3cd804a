#include "operator/local/run/local_images.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/base/file.h"

namespace tfjob::local {
namespace {

// Creates a folder with programs and adds it to PATH. The first tfjob-trainer in PATH cannot be
// executed.
class ProgramsTest : public ::testing::Test {
 protected:
  ProgramsTest() {
    for (const char* folder : {"/first", "/second", "/third"}) {
      EXPECT_TRUE(MakeDirectories(folder_ + folder).ok());
      AddFile(StrCat(folder, "/tfjob-trainer"), 0755);
    }
    AddFile("/mine", 0755);
    chmod((folder_ + "/first/tfjob-trainer").c_str(), 0644);
    EXPECT_EQ(symlink("mine", (folder_ + "/link").c_str()), 0);
    setenv("PATH", StrCat(folder_, "/first:", folder_, "/second:", folder_, "/third").c_str(), 1);
  }
  ~ProgramsTest() override { setenv("PATH", path_.c_str(), 1); }

  void AddFile(const std::string& name, mode_t mode) {
    EXPECT_TRUE(WriteFileAtomically(folder_ + name, "#!/bin/sh\n").ok());
    EXPECT_EQ(chmod((folder_ + name).c_str(), mode), 0);
  }
  // Returns "repository=program …", or the error's message. In the arguments and the result, "%"
  // stands for the test's folder.
  std::string Images(const std::string& trainer, std::vector<std::string> images) {
    for (std::string& image : images) Replace(image, "%", folder_);
    std::string path = trainer;
    const auto found = LocalImages(Replace(path, "%", folder_), images);
    std::string text = found.ok() ? "" : std::string(Message(found.status()));
    for (const process::LocalImage& image : found.value_or(std::vector<process::LocalImage>())) {
      text += StrCat(text.empty() ? "" : " ", image.repository, "=", image.program);
    }
    return Replace(text, folder_, "%");
  }
  static std::string& Replace(std::string& text, const std::string& from, const std::string& to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;) {
      text.replace(at, from.size(), to);
    }
    return text;
  }

  const std::string path_ = getenv("PATH");
  const std::string folder_ =
      StrCat(::testing::TempDir(), ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ProgramsTest, MapsImagesToProgramsThatCanBeExecuted) {
  const struct {
    const char* trainer;
    std::vector<std::string> images;
    const char* expected;
  } cases[] = {
      {"", {}, "tfjob/trainer=%/second/tfjob-trainer"},
      {"%/mine", {}, "tfjob/trainer=%/mine"},
      {"%/link", {"a/b=%/link"}, "a/b=%/mine tfjob/trainer=%/mine"},
      {"%/mine", {"b=%/link", "a=%/mine"}, "b=%/mine a=%/mine tfjob/trainer=%/mine"},
      {"%/first/tfjob-trainer",
       {},
       "%/first/tfjob-trainer: expected a program, but it cannot be executed"},
      {"%/none", {}, "%/none: expected a program, but it cannot be executed"},
      {"", {"a=%/mine", "b=%/none"}, "%/none: expected a program, but it cannot be executed"},
      {"", {"a=%/mine=x"}, "%/mine=x: expected a program, but it cannot be executed"},
      {"", {"=%/mine"}, "--image: expected REPOSITORY=PROGRAM, got \"=%/mine\""},
  };
  for (const auto& each : cases) EXPECT_EQ(Images(each.trainer, each.images), each.expected);
}

TEST_F(ProgramsTest, HasNoTrainerWherePathHasNone) {
  setenv("PATH", (folder_ + "/first").c_str(), 1);
  EXPECT_EQ(Images("", {"a=%/mine"}), "a=%/mine");
}

TEST_F(ProgramsTest, ContainersStartWithTheFewVariablesThatAreSet) {
  setenv("TZ", "UTC", 1);
  setenv("LC_ALL", "", 1);
  setenv("KUBECONFIG", "/secret", 1);
  unsetenv("LD_LIBRARY_PATH");
  const process::Variables variables = BaseEnvironment();
  EXPECT_EQ(variables.at("PATH").substr(0, folder_.size()), folder_);
  EXPECT_EQ(variables.at("TZ"), "UTC");
  EXPECT_EQ(variables.at("LC_ALL"), "");
  EXPECT_EQ(variables.count("KUBECONFIG"), 0u);
  EXPECT_EQ(variables.count("LD_LIBRARY_PATH"), 0u);
  unsetenv("LC_ALL");
}

}  // namespace
}  // namespace tfjob::local
