// The device that a program is compiled for, as a value: its kernels, its memory, the alignment of
// its rows. Only CPUs now. Another device is another function that makes such a value (twin files),
// and the rest of exec does not depend on it.
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
  // Allocates memory aligned to 64 bytes. Returns ResourceExhausted for more than the device has.
  std::function<StatusOr<DeviceMemory>(size_t bytes)> allocate;
  // Returns the stride that the rows of a tensor, or of a variable, should have in the plan.
  int64_t (*row_stride)(DType dtype, const Shape& shape);
};

Device CpuDevice(ThreadPool* pool = nullptr);

// Returns the row stride for CPUs, in elements. This is the size of the last dimension, plus one
// cache line if rows of rank-2 floats would begin at a multiple of a large power of two and fall
// into few sets of the cache.
int64_t RowStride(DType dtype, const Shape& shape);

}  // namespace tfjob::exec
