// Checks the summaries of files with arbitrary bytes: summarising never crashes, whatever the
// format is, and only prints characters that a terminal does not interpret.
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
    ENFORCE(
        std::ranges::none_of(
            text,
            [](char c) { return c == '\x1b' || c == '\x7f' || (c >= 0 && c < ' ' && c != '\n'); }),
        "no control characters");
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
