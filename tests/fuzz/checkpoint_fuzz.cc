// libFuzzer's entry point for arbitrary bytes (checkpoint_property.h). The first byte of an input
// selects how the remaining bytes are read: as the index of a checkpoint (i), the entry of a
// partitioned variable (s), the file "checkpoint" (c), finished.json (f) or TFRecords (r).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/checkpoint_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'i':
      tfjob::fuzz::CheckIndexProperties(rest);
      break;
    case 's':
      tfjob::fuzz::CheckSliceProperties(rest);
      break;
    case 'c':
      tfjob::fuzz::CheckListProperties(rest);
      break;
    case 'f':
      tfjob::fuzz::CheckMarkProperties(rest);
      break;
    case 'r':
      tfjob::fuzz::CheckRecordProperties(rest);
      break;
    default:
      break;
  }
  return 0;
}
