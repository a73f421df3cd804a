// Describes the device for which a program is compiled: its kernels, its memory and the row strides
// of its tensors. Limitation: only CPUs are supported. To support another device, add a function
// like CpuDevice in a separate file. The rest of this package does not depend on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/kernels/kernel.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::exec {

// Memory of a device. Dropping the last reference frees it.
using DeviceMemory = std::shared_ptr<void>;

struct Device {
  std::string name;                     // "/device:CPU:0"
  const kernels::KernelTable* kernels;  // includes ApplyOptimizer; exists until the process exits
  ThreadPool* pool = nullptr;  // helps the thread that runs a program; not owned; may be null
  // Allocates memory aligned to 64 bytes. Returns ResourceExhausted if the device does not have
  // that much memory.
  std::function<StatusOr<DeviceMemory>(size_t bytes)> allocate;
  // Returns the stride, in elements, that the rows of a tensor or variable should have.
  int64_t (*row_stride)(DType dtype, const Shape& shape);
};

Device CpuDevice(ThreadPool* pool = nullptr);

// Returns the row stride for CPUs, in elements. It is the size of the last dimension. If the rows
// of a matrix take a multiple of 1 KiB, the stride is one cache line longer, because such rows
// would otherwise fall into few sets of the cache.
int64_t RowStride(DType dtype, const Shape& shape);

}  // namespace tfjob::exec
