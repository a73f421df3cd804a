// libFuzzer's entry point for arbitrary bytes (kubeconfig_property.h).
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/kubeconfig_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tfjob::fuzz::CheckKubeconfigProperties({reinterpret_cast<const char*>(data), size});
  return 0;
}
