// The entry point for libFuzzer: bazel build --config=fuzz //tests/fuzz:watch_fuzz, then run it on
// a copy of corpus/watch.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/watch_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfjob::fuzz::CheckWatchProperties({reinterpret_cast<const char*>(data), size});
  return 0;
}
