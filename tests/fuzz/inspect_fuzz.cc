// Checks the summaries of files with arbitrary bytes: for every format, summarising never crashes,
// and prints only characters that a terminal does not interpret.
#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/base/stop.h"
#include "runtime/data/inspect/file_format.h"
#include "tests/fuzz/records_property.h"

namespace tfjob::fuzz {
namespace {

void Check(const MemoryFile& file, const std::string& format) {
  const StopSource stop;
  const StatusOr<data::FileSummary> summary = data::Summarise(file.path(), format, {}, stop);
  if (!summary.ok()) return;
  for (const std::string& text : {summary->Describe(), summary->DescribeDamage()}) {
    ENFORCE(std::ranges::none_of(
                text, [](char c) { return c == '\x7f' || (c >= 0 && c < ' ' && c != '\n'); }),
            "no control characters");
    // Look for U+0080 to U+009F, U+200E, U+200F, U+202A to U+202E, and U+2066 to U+2069.
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      const std::string_view two = std::string_view(text).substr(i, 2);
      const std::string_view three = std::string_view(text).substr(i, 3);
      ENFORCE(!(two[0] == '\xC2' && two[1] >= '\x80' && two[1] < '\xA0'), "no controls of C1");
      ENFORCE(three != "\xE2\x80\x8E" && three != "\xE2\x80\x8F" &&
                  !(three >= "\xE2\x80\xAA" && three <= "\xE2\x80\xAE") &&
                  !(three >= "\xE2\x81\xA6" && three <= "\xE2\x81\xA9"),
              "no change of direction");
    }
  }
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tfjob::fuzz::MemoryFile file({reinterpret_cast<const char*>(data), size});
  tfjob::fuzz::Check(file, "");
  for (const tfjob::data::FileFormat& format : tfjob::data::FileFormats())
    tfjob::fuzz::Check(file, std::string(format.name));
  return 0;
}
