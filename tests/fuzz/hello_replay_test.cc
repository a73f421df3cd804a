// Runs the corpus, including crashes found earlier, through the fuzzer's function in every build.
#include <gtest/gtest.h>

#include "runtime/base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tfjob::fuzz {
namespace {

void Check(std::string_view bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

TEST(Corpus, AHelloKeepsItsPropertiesWhateverArrives) {
  const std::string folder = "tests/fuzz/corpus/hello";
  const StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_GE(names->size(), 8u);
  for (const std::string& name : *names) {
    SCOPED_TRACE(name);
    const StatusOr<std::string> bytes = ReadFile(folder + "/" + name);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    Check(*bytes);
    for (size_t at = 1; at < bytes->size(); ++at) {
      Check(std::string_view(*bytes).substr(0, at));
      std::string changed = *bytes;
      changed[at] ^= 0x85;
      Check(changed);
    }
  }
}

}  // namespace
}  // namespace tfjob::fuzz
