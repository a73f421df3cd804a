#include "runtime/exec/cuda_device.h"

#include "runtime/device/cuda/cuda_runtime.h"
#include "runtime/kernels/cuda/images.h"

namespace tfjob::exec {

StatusOr<Device> CudaDevice(ThreadPool* pool) {
  ASSIGN_OR_RETURN(const device::cuda::DriverApi* const driver, device::cuda::OpenDriver());
  return CudaDevice(*driver, pool);
}

StatusOr<Device> CudaDevice(const device::cuda::DriverApi& driver, ThreadPool*) {
  const auto images = kernels::cuda::Images();
  if (images.empty()) {  // returns before the GPU is used
    return Unimplemented(
        "this machine has a GPU, but this program was built without CUDA kernels, which "
        "--config=cuda adds");
  }
  ASSIGN_OR_RETURN(const auto runtime, device::cuda::CudaRuntime::Create(driver, {}, images));
  return Unimplemented(runtime->description(),
                       " works, but this version has no CUDA kernels for matrix products, so it "
                       "cannot train on a GPU (docs/gpu.md)");
}

}  // namespace tfjob::exec
