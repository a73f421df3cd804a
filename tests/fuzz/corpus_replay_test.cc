// Runs the corpus, including crashes found earlier, through the fuzzer's function in every build.
#include <gtest/gtest.h>

#include "runtime/base/file.h"
#include "tests/fuzz/manifest_property.h"

namespace tfjob::fuzz {
namespace {

TEST(Corpus, EveryManifestKeepsTheProperties) {
  const std::string folder = "tests/fuzz/corpus/manifest";
  const StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_GE(names->size(), 10u);
  for (const std::string& name : *names) {
    SCOPED_TRACE(name);
    const StatusOr<std::string> text = ReadFile(folder + "/" + name);
    ASSERT_TRUE(text.ok()) << text.status();
    CheckManifestProperties(*text);
  }
}

}  // namespace
}  // namespace tfjob::fuzz
