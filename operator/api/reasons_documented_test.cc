// Checks that docs/errors.md has a paragraph for each reason in reasons.h, and no other.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "runtime/base/file.h"

namespace tfjob::api {
namespace {

std::set<std::string> Matches(const std::string& path, const char* pattern) {
  const StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  std::set<std::string> found;
  if (!text.ok()) return found;
  const std::regex regex(pattern);
  for (std::sregex_iterator match(text->begin(), text->end(), regex), end; match != end; ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

TEST(ReasonCatalogue, DocumentsEveryReasonAndNoOther) {
  const std::set<std::string> reasons =
      Matches("operator/api/reasons.h", R"re(kReason\w+\[\] =\s+"(\w+)";)re");
  const std::set<std::string> paragraphs = Matches("docs/errors.md", "\n### `(\\w+)`\n\\w");
  EXPECT_GE(reasons.size(), 20u);
  EXPECT_EQ(reasons, paragraphs);
}

}  // namespace
}  // namespace tfjob::api
