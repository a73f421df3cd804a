// Runs a corpus, including crashes found earlier, through a fuzzer's function in every build.
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tfjob::fuzz {
namespace {

// Each input is also tried with a truncation, and with a changed byte, at every kStride-th
// position, but at no more than kMostPositions positions.
constexpr size_t kStride = 7;
constexpr size_t kMostPositions = 64;

// Calls the fuzzer's function with a copy of the bytes, so that a sanitizer detects reads beyond
// their end.
void Try(std::string_view bytes) {
  const std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

TEST(Corpus, KeepsTheProperties) {
  const std::string folder = std::getenv("FUZZ_CORPUS");
  const StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_GE(names->size(), 10u);
  for (const std::string& name : *names) {
    SCOPED_TRACE(name);
    const StatusOr<std::string> bytes = ReadFile(folder + "/" + name);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    Try(*bytes);
    const size_t stride = std::max(kStride, bytes->size() / kMostPositions);
    for (size_t at = 0; at < bytes->size(); at += stride) {
      Try(std::string_view(*bytes).substr(0, at));
      std::string changed = *bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0x85);
      Try(changed);
    }
  }
}

}  // namespace
}  // namespace tfjob::fuzz
