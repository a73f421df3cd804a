#include "runtime/api/generate/generate.h"

#include <gtest/gtest.h>

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
