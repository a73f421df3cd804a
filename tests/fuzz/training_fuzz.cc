// libFuzzer's entry point for arbitrary bytes (training_property.h). The first byte of an input
// selects how the remaining bytes are read: as a training file (t), Keras JSON (k), IDX (i) or CSV
// (c).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/training_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 't':
      tfjob::fuzz::CheckTrainingFileProperties(rest);
      break;
    case 'k':
      tfjob::fuzz::CheckKerasJsonProperties(rest);
      break;
    case 'i':
      tfjob::fuzz::CheckIdxProperties(rest);
      break;
    case 'c':
      tfjob::fuzz::CheckCsvProperties(rest);
      break;
    default:
      break;
  }
  return 0;
}
