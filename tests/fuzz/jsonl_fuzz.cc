// Checks the reader of JSON lines with arbitrary bytes; records_property.h lists the properties.
#include <string_view>

#include "runtime/data/jsonl/jsonl.h"
#include "tests/fuzz/records_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfjob::fuzz::CheckRecordFile(
      {reinterpret_cast<const char*>(data), size},
      {.features = {{.name = "f"},
                    {.name = "i", .dtype = tfjob::DType::kInt64, .shape = {2}, .variable = true},
                    {.name = "m", .shape = {2, 2}, .fill = 0.5},
                    {.name = "s", .shape = {3, 2}, .variable = true, .sequence = true}},
       .fields = {{"f", "f"}, {"i", "i"}, {"m", "m"}, {"s", "s"}}},
      tfjob::data::OpenJsonLines, "jsonl");
  return 0;
}
