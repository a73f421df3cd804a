// The entry point for libFuzzer: bazel build --config=fuzz //tests/fuzz:kubeconfig_fuzz, then run
// it on a copy of corpus/kubeconfig.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/kubeconfig_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfjob::fuzz::CheckKubeconfigProperties({reinterpret_cast<const char*>(data), size});
  return 0;
}
