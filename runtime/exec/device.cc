#include "runtime/exec/device.h"

#include <unistd.h>

#include <utility>

#include "runtime/optimizer/apply_kernel.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::exec {
namespace {

constexpr int64_t kCacheLine = 64;
// Rows that begin at multiples of this distance fall into few of the 64 sets of a first-level cache
// (64 sets of kCacheLine bytes are 4096 bytes).
constexpr int64_t kConflictingBytes = 1024;

size_t PhysicalBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
}

// Returns an error for more memory than the machine has. Linux would grant it and kill the process
// later.
StatusOr<DeviceMemory> AllocateHost(size_t bytes) {
  if (bytes > PhysicalBytes()) {
    return ResourceExhausted("the program needs ", bytes, " bytes of memory, but the machine has ",
                             PhysicalBytes(), "; choose a smaller batch");
  }
  auto buffer = std::make_shared<Buffer>(bytes);
  return DeviceMemory(buffer, buffer->data());
}

const kernels::KernelTable& HostKernels() {
  static const auto* const kTable =
      new kernels::KernelTable(kernels::CpuKernels().With(optimizer::CpuKernels()));
  return *kTable;
}

}  // namespace

Device CpuDevice(ThreadPool* pool) {
  return Device{"/device:CPU:0", &HostKernels(), pool, AllocateHost, RowStride};
}

int64_t RowStride(DType dtype, const Shape& shape) {
  const int64_t cols = shape.rank() == 0 ? 1 : shape.dim(-1);
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (shape.rank() != 2 || shape.dim(0) < 2 || cols == 0) return cols;
  return cols * size % kConflictingBytes == 0 ? cols + kCacheLine / size : cols;
}

}  // namespace tfjob::exec
