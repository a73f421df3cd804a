// Stands in for the cuBLASLt of CUDA 12, for tests.
#include <cstddef>

extern "C" size_t cublasLtGetVersion() {
  return 120304;
}
