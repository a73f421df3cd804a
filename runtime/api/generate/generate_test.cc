#include "runtime/api/generate/generate.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>

#include "runtime/base/file.h"

namespace tfjob::api {
namespace {

TEST(Generated, FilesAreWhatTheTablesGenerate) {
  for (const GeneratedFile& file : GeneratedFiles()) {
    const StatusOr<std::string> text = ReadFile("runtime/api/" + file.name);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, file.text)
        << file.name << " is stale; regenerate it: "
        << "bazel run //runtime/api/generate:write_headers -- $PWD/runtime/api";
  }
}

// If a required member had a default, a missing value could not be detected.
TEST(Generated, RequiredMembersAreEmpty) {
  int found = 0;
  for (const GeneratedFile& file : LayerFiles()) {
    std::istringstream lines(file.text);
    std::string line;
    bool required = false;
    while (std::getline(lines, line)) {
      const bool comment = line.starts_with("  // ");
      if (line.starts_with("  // required")) required = true;
      if (comment || !std::exchange(required, false)) continue;
      ++found;
      EXPECT_TRUE(line.ends_with(" = {};")) << file.name << ": " << line;
      for (const char* type : {"  int64_t ", "  double ", "  bool "})
        EXPECT_FALSE(line.starts_with(type)) << file.name << ": " << line;
    }
  }
  EXPECT_GT(found, 50);
}

TEST(Generated, ClassesHaveKerasNames) {
  EXPECT_EQ(ClassNameOf("sgd"), "SGD");
  EXPECT_EQ(ClassNameOf("adam"), "Adam");
  EXPECT_EQ(ClassNameOf("piecewise_constant_decay"), "PiecewiseConstantDecay");
  EXPECT_EQ(ClassNameOf("kl_divergence"), "KLDivergence");
}

TEST(Generated, CommentsAreWrapped) {
  EXPECT_EQ(Comment("one two", "  "), "  // one two\n");
  const std::string word(60, 'x');
  EXPECT_EQ(Comment(word + " " + word, ""), "// " + word + "\n// " + word + "\n");
}

}  // namespace
}  // namespace tfjob::api
