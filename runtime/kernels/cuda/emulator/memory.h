// Stands for a GPU's memory in tests of kernels. Every allocation is known to the shadow, and what
// was not written is NaN.
#pragma once

#include <cstddef>
#include <string>

namespace tfjob::kernels::cuda {

class EmulatedMemory {
 public:
  // At most one object may exist at a time.
  EmulatedMemory();
  ~EmulatedMemory();
  EmulatedMemory(const EmulatedMemory&) = delete;
  EmulatedMemory& operator=(const EmulatedMemory&) = delete;

  // Returns memory that begins `offset` bytes after a multiple of 256. The test fails if there is
  // no more.
  std::byte* Allocate(size_t bytes, const std::string& name, size_t offset = 0);
  // Copies from the host.
  static void Write(std::byte* to, const void* from, size_t bytes);

 private:
  size_t used_ = 0;
};

}  // namespace tfjob::kernels::cuda
