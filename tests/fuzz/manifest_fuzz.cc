// libFuzzer's entry point for arbitrary bytes (manifest_property.h).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/manifest_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfjob::fuzz::CheckManifestProperties({reinterpret_cast<const char*>(data), size});
  return 0;
}
