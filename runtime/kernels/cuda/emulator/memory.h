// Simulates a GPU's memory in tests of kernels. The shadow (shadow.h) tracks every allocation, and
// memory that has not been written contains NaN.
#pragma once

#include <cstddef>
#include <string>

namespace tfjob::kernels::cuda {

class EmulatedMemory {
 public:
  // No other object may exist.
  EmulatedMemory();
  ~EmulatedMemory();
  EmulatedMemory(const EmulatedMemory&) = delete;
  EmulatedMemory& operator=(const EmulatedMemory&) = delete;

  // Returns memory whose address is a multiple of 256, plus `offset`. The test fails if no memory
  // is left.
  std::byte* Allocate(size_t bytes, const std::string& name, size_t offset = 0);
  // Freed memory is never reused.
  static void Free(std::byte* memory);
  // Copies `bytes` bytes from the host.
  static void Write(std::byte* to, const void* from, size_t bytes);

 private:
  size_t used_ = 0;
};

}  // namespace tfjob::kernels::cuda
