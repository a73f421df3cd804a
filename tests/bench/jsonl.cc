// Implements the benchmark case jsonl: reading files of JSON lines.
#include "runtime/data/jsonl/jsonl.h"

#include <string>

#include "runtime/base/status.h"
#include "tests/bench/records.h"

namespace tfjob::bench {
namespace {

std::string RecordOf(int64_t example, const RecordsOptions& options) {
  std::string line = "{";
  for (int64_t f = 0; f < options.features; ++f) {
    line += StrCat(f == 0 ? "\"" : ", \"", FeatureName(f), "\": ");
    line += f % 2 == 0 ? StrCat(example * f) : StrCat(static_cast<double>(example) / 8);
  }
  return line + "}\n";
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::RecordsMain(
      argc, argv,
      {.name = "jsonl", .record = tfjob::bench::RecordOf, .open = tfjob::data::OpenJsonLines});
}
