// Runs the corpus, including crashes found earlier, through the fuzzer's function in every build.
#include <gtest/gtest.h>

#include "runtime/base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tfjob::fuzz {
namespace {

void Check(std::string_view bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

TEST(Corpus, AParameterServerKeepsItsPropertiesWhateverItIsSent) {
  const std::string folder = "tests/fuzz/corpus/parameters";
  const StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_GE(names->size(), 10u);
  for (const std::string& name : *names) {
    SCOPED_TRACE(name);
    const StatusOr<std::string> bytes = ReadFile(folder + "/" + name);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    Check(*bytes);
    // At every 13th position, also test the bytes truncated and with a changed byte.
    for (size_t at = 1; at < bytes->size(); at += 13) {
      Check(std::string_view(*bytes).substr(0, at));
      std::string changed = *bytes;
      changed[at] ^= 0x85;
      Check(changed);
    }
  }
}

}  // namespace
}  // namespace tfjob::fuzz
