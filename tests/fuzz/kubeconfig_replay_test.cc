// Runs the corpus through the fuzzer's function in every build.
#include <gtest/gtest.h>

#include "runtime/base/file.h"
#include "tests/fuzz/kubeconfig_property.h"

namespace tfjob::fuzz {
namespace {

TEST(Corpus, EveryKubeconfigKeepsTheProperties) {
  const std::string folder = "tests/fuzz/corpus/kubeconfig";
  const StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_GE(names->size(), 8u);
  for (const std::string& name : *names) {
    SCOPED_TRACE(name);
    const StatusOr<std::string> text = ReadFile(folder + "/" + name);
    ASSERT_TRUE(text.ok()) << text.status();
    CheckKubeconfigProperties(*text);
    // A truncated text may be an error, but must not cause a crash.
    for (size_t length = 0; length < text->size(); length += 7) {
      CheckKubeconfigProperties(std::string_view(*text).substr(0, length));
    }
  }
}

}  // namespace
}  // namespace tfjob::fuzz
