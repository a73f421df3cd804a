// Looks for an NVIDIA GPU that this program can use (docs/gpu.md).
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/device/cuda/driver_api.h"
#include "runtime/exec/device.h"

namespace tfjob::exec {

// Returns the GPU. Returns FailedPrecondition if there is no GPU or it is not suitable, and
// Unimplemented if this program has no kernels for it. The message says what to do.
//
// Today, this also fails on machines with a suitable GPU, because the table of kernels is not
// complete enough for a training step. The message then says so.
StatusOr<Device> CudaDevice(ThreadPool* pool = nullptr);

// Does the same with the given functions of a driver that is initialised, and as if this program
// contained kernels. Creates no context on the GPU, because that takes time and memory.
StatusOr<Device> CudaDevice(const device::cuda::DriverApi& driver, ThreadPool* pool);

}  // namespace tfjob::exec
