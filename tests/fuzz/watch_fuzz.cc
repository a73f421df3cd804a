// libFuzzer's entry point for arbitrary bytes (watch_property.h).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/watch_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfjob::fuzz::CheckWatchProperties({reinterpret_cast<const char*>(data), size});
  return 0;
}
