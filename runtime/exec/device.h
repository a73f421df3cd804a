// Describes, as a value, the device that a program is compiled for: its kernels, its memory and the
// strides of its rows. Only CPUs are supported so far. Another device needs another function that
// makes such a value, in a twin file; the rest of exec does not depend on the device.
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
  const kernels::KernelTable* kernels;  // with ApplyOptimizer; lives as long as the process
  ThreadPool* pool = nullptr;  // helps the thread that runs a program; borrowed, null for none
  // Allocates memory aligned to 64 bytes. Returns ResourceExhausted if the device does
  // not have that much.
  std::function<StatusOr<DeviceMemory>(size_t bytes)> allocate;
  // Returns the stride that the rows of a tensor or a variable should have.
  int64_t (*row_stride)(DType dtype, const Shape& shape);
};

Device CpuDevice(ThreadPool* pool = nullptr);

// Returns the row stride for CPUs, in elements: the size of the last dimension. If the rows of a
// matrix take a multiple of 1 KiB, one cache line is added to each, since they would otherwise fall
// into few sets of the cache.
int64_t RowStride(DType dtype, const Shape& shape);

}  // namespace tfjob::exec
