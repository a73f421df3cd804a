#include "runtime/exec/cuda_device.h"

#include "runtime/device/cuda/cuda_runtime.h"
#include "runtime/kernels/cuda/images.h"

namespace tfjob::exec {

StatusOr<Device> CudaDevice(ThreadPool* pool) {
  if (kernels::cuda::Images().empty()) {  // returns before the GPU is used
    RETURN_IF_ERROR(device::cuda::FindDriver());
    return Unimplemented(
        "this machine has an NVIDIA driver, but this program was built without CUDA kernels, which "
        "--config=cuda adds");
  }
  ASSIGN_OR_RETURN(const device::cuda::DriverApi* const driver, device::cuda::OpenDriver());
  return CudaDevice(*driver, pool);
}

StatusOr<Device> CudaDevice(const device::cuda::DriverApi& driver, ThreadPool*) {
  ASSIGN_OR_RETURN(const auto gpu, device::cuda::FindGpu(driver, /*number=*/0));
  return Unimplemented(
      gpu.description,
      " is supported, but this version has no CUDA kernels for matrix products, so "
      "it cannot train on a GPU (docs/gpu.md)");
}

}  // namespace tfjob::exec
