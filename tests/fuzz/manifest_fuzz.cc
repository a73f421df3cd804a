// The entry point for libFuzzer: bazel build --config=fuzz //tests/fuzz:manifest_fuzz, then run it
// on a copy of corpus/manifest.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/manifest_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfjob::fuzz::CheckManifestProperties({reinterpret_cast<const char*>(data), size});
  return 0;
}
