// The device that a program is compiled for, as a value: its kernels, its memory, its rows'
// alignment. CPUs now; another device is another function that makes such a value (twin files), and
// nothing else of exec knows of it.
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

// Memory of a device, freed with it.
using DeviceMemory = std::shared_ptr<void>;

struct Device {
  std::string name;                     // "/device:CPU:0"
  const kernels::KernelTable* kernels;  // with ApplyOptimizer; lives as long as the process
  ThreadPool* pool = nullptr;  // helps the thread that runs a program; borrowed, null for none
  // Aligned to 64 bytes. ResourceExhausted for more than the device has.
  std::function<StatusOr<DeviceMemory>(size_t bytes)> allocate;
  // The stride that the rows of a tensor should have in the plan, for a variable too.
  int64_t (*row_stride)(DType dtype, const Shape& shape);
};

Device CpuDevice(ThreadPool* pool = nullptr);

// The row stride of CPUs, in elements: the last dimension, made longer by one cache line where rows
// of rank-2 floats would begin at a multiple of a large power of two and fall into few sets of the
// cache.
int64_t RowStride(DType dtype, const Shape& shape);

}  // namespace tfjob::exec
