// The entry point for libFuzzer: bazel build --config=fuzz //tests/fuzz:parameters_fuzz, then run
// it on a copy of corpus/parameters. The first byte of an input selects how the rest is read: as an
// assignment (a) or as frames (f).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/parameters_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'a') tfjob::fuzz::CheckAssignmentProperties(rest);
  if (data[0] == 'f') tfjob::fuzz::CheckFrameProperties(rest);
  return 0;
}
