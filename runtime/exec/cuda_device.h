// Looks for a GPU of NVIDIA that this program can compute on (docs/gpu.md).
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/device/cuda/driver_api.h"
#include "runtime/exec/device.h"

namespace tfjob::exec {

// Returns the GPU. Returns an error that says what to do if there is none, or it does not suit
// (FailedPrecondition), or this program has no kernels for it (Unimplemented).
//
// Today, this fails on every machine: the table of kernels is not complete enough for a training
// step. The message then says so.
StatusOr<Device> CudaDevice(ThreadPool* pool = nullptr);

// The same with the driver's functions.
StatusOr<Device> CudaDevice(const device::cuda::DriverApi& driver, ThreadPool* pool);

}  // namespace tfjob::exec
