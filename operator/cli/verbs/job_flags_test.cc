// Tests the parsing of label selectors.
#include "operator/cli/verbs/job_flags.h"

#include <gtest/gtest.h>

namespace tfjob::cli {
namespace {

using Labels = client::LabelSelector;

TEST(JobFlagsTest, ParsesSelectors) {
  const std::vector<std::pair<const char*, Labels>> cases = {{"", {}},
                                                             {"a=b", {{"a", "b"}}},
                                                             {"a==b,c=", {{"a", "b"}, {"c", ""}}},
                                                             {"a=b,", {{"a", "b"}}}};
  for (const auto& [text, labels] : cases) {
    const auto parsed = ParseSelector(text);
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, labels) << text;
  }
  for (const char* wrong : {"team", "=b", "a!=b", ",", "a=b,c"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSelector(wrong).status())) << wrong;
  }
}

}  // namespace
}  // namespace tfjob::cli
