// Runs the corpus, including crashes found earlier, through the fuzzer's function in every build.
#include <gtest/gtest.h>

#include "runtime/base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tfjob::fuzz {
namespace {

TEST(Corpus, AFolderFromSomebodyElseKeepsTheProperties) {
  const std::string folder = "tests/fuzz/corpus/checkpoint";
  const StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_GE(names->size(), 10u);
  for (const std::string& name : *names) {
    SCOPED_TRACE(name);
    const StatusOr<std::string> bytes = ReadFile(folder + "/" + name);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size());
  }
}

}  // namespace
}  // namespace tfjob::fuzz
