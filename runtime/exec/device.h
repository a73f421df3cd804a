// Describes the device that a program is compiled for: its kernels, its memory and the row strides
// of its tensors. To support another device, implement device::DeviceRuntime and add a function
// like CpuDevice in its own file, as fake_device.h does. All other files of this package are
// independent of the device (docs/CONTRIBUTING.md, "Add a device").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/device/device_runtime.h"
#include "runtime/kernels/kernel.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::exec {

struct Device {
  std::string name;                                     // "/device:CPU:0"
  std::shared_ptr<const kernels::KernelTable> kernels;  // includes ApplyOptimizer
  ThreadPool* pool = nullptr;  // helps the thread that runs a program; not owned; may be null
  // Variables that programs use on this device must come from the same runtime.
  std::shared_ptr<device::DeviceRuntime> runtime;
  // Returns the stride, in elements, that the rows of a tensor or variable should have.
  int64_t (*row_stride)(DType dtype, const Shape& shape);
  // Set if the kernels support graph::Fusion::kRecompute, ReadHalfGradients, and FuseSgd with half
  // types.
  bool recomputes = false;
  std::string reason;      // why "auto" chose this device; "" if it was chosen by name
  bool for_tests = false;  // much slower than the CPU
};

// Specifies how this process uses a GPU.
struct GpuOptions {
  // The index of this process among the processes that may share the machine's GPUs. If n GPUs are
  // visible, this process uses GPU `process` modulo n.
  int process = 0;
  double memory_fraction = 1;  // of the GPU's memory, in (0, 1]
  // Rounds the operands of matrix products to TF32 (10 bits of mantissa), which makes products
  // several times as fast. The terms are still added in float32.
  bool allow_tf32 = false;

  bool operator==(const GpuOptions&) const = default;
};

Device CpuDevice(ThreadPool* pool = nullptr);

// Returns the device with this name: "cpu"; "cuda", an NVIDIA GPU (cuda_device.h); or "auto", which
// is the CPU until the CUDA kernels have run on a real GPU. For developers, there are also "fake"
// and "fake:SEED" (fake_device.h), where SEED is a number. Returns InvalidArgument for other names.
// If "cuda" cannot be used, returns the error of CudaDevice. `gpu` applies only to GPUs.
StatusOr<Device> DeviceByName(std::string_view name, ThreadPool* pool = nullptr,
                              const GpuOptions& gpu = {});

// Returns the row stride for CPUs, in elements. It is the size of the last dimension, plus one
// cache line if the size of a matrix's rows is a multiple of 1 KiB. Without the extra cache line,
// such rows would fall into only a few sets of the cache.
int64_t RowStride(DType dtype, const Shape& shape);

}  // namespace tfjob::exec
