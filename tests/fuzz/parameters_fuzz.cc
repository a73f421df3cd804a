// libFuzzer's entry point for arbitrary bytes (parameters_property.h). The first byte of an input
// selects how the remaining bytes are read: as an assignment (a), frames (f) or a ledger (l).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/parameters_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'a') tfjob::fuzz::CheckAssignmentProperties(rest);
  if (data[0] == 'f') tfjob::fuzz::CheckFrameProperties(rest);
  if (data[0] == 'l') tfjob::fuzz::CheckLedgerProperties(rest);
  return 0;
}
