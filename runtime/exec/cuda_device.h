// Makes an NVIDIA GPU available as a device for programs (docs/gpu.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/device/cuda/blas_api.h"
#include "runtime/device/cuda/driver_api.h"
#include "runtime/exec/device.h"

namespace tfjob::exec {

// Returns the GPU that the options select. All calls in a process share the same streams, memory
// and kernels, so they must pass the same options. Returns Unimplemented if this program contains
// no CUDA kernels. Returns FailedPrecondition if there is no suitable GPU, if a library is missing,
// or if an earlier call passed other options. The message says what to do.
StatusOr<Device> CudaDevice(ThreadPool* pool = nullptr, const GpuOptions& options = {});

// Returns a description of the GPU, or the error that CudaDevice would return. Creates no context
// on the GPU, because creating one would take time and memory.
StatusOr<std::string> FindCudaDevice(const GpuOptions& options = {});

// The parts from which MakeCudaDevice creates a device. They must outlive the device.
struct CudaParts {
  const device::cuda::DriverApi& driver;  // initialised
  const device::cuda::BlasApi& blas;
  std::span<const std::span<const std::byte>> images;  // the kernels
};

// Creates a device. CudaDevice calls this function only once.
StatusOr<Device> MakeCudaDevice(const CudaParts& parts, const GpuOptions& options = {});

}  // namespace tfjob::exec
