// Runs the corpus, including crashes found earlier, through the fuzzer's function in every build.
#include <gtest/gtest.h>

#include "runtime/base/file.h"
#include "tests/fuzz/watch_property.h"

namespace tfjob::fuzz {
namespace {

TEST(Corpus, EveryWatchKeepsTheProperties) {
  const std::string folder = "tests/fuzz/corpus/watch";
  const StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_GE(names->size(), 10u);
  for (const std::string& name : *names) {
    SCOPED_TRACE(name);
    const StatusOr<std::string> bytes = ReadFile(folder + "/" + name);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    CheckWatchProperties(*bytes);
    // At every 13th position, also test the bytes truncated and with a changed byte.
    for (size_t at = 0; at < bytes->size(); at += 13) {
      CheckWatchProperties(std::string_view(*bytes).substr(0, at));
      std::string changed = *bytes;
      changed[at] ^= 0x85;
      CheckWatchProperties(changed);
    }
  }
}

}  // namespace
}  // namespace tfjob::fuzz
