#include "runtime/exec/cuda_device.h"

#include <functional>
#include <utility>

#include "runtime/device/cuda/cuda_runtime.h"
#include "runtime/kernels/cuda/images.h"
#include "runtime/kernels/cuda/table.h"

namespace tfjob::exec {
namespace {

using device::cuda::CudaRuntime;
using kernels::cuda::LaunchRequest;
using kernels::cuda::Products;

// Returns the row stride without padding. The matrix-product library accepts any row stride, and
// the other kernels are fastest on contiguous tensors.
int64_t DenseRows(DType, const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.dim(-1);
}

device::cuda::Dim3 DimOf(const kernels::cuda::Grid& grid) {
  return {grid.x, grid.y, grid.z};
}

kernels::cuda::Launcher LauncherOf(const std::shared_ptr<CudaRuntime>& runtime) {
  return [runtime](const LaunchRequest& launch, kernels::Stream& stream) {
    const auto kernel = runtime->FindKernel(launch.kernel);
    if (!kernel.ok()) return runtime->Keep(kernel.status());
    runtime->Submit({.kernel = *kernel,
                     .name = launch.kernel,
                     .grid = DimOf(launch.grid),
                     .block = DimOf(launch.block),
                     .parameter = launch.parameter,
                     .bytes = launch.bytes},
                    *stream.queue());
  };
}

// Calls `run` once with zeroed memory, and waits for the operations that it submits.
Status Rehearse(CudaRuntime& runtime, size_t bytes,
                const std::function<void(void*, kernels::Stream&)>& run) {
  ASSIGN_OR_RETURN(const device::Memory memory,
                   runtime.Allocate(device::MemoryKind::kDevice, bytes, Buffer::Contents::kZero,
                                    "the first run of a matrix product"));
  ASSIGN_OR_RETURN(const auto queue, runtime.NewStream());
  kernels::Stream stream(nullptr, runtime, *queue);
  run(memory.get(), stream);
  return runtime.Synchronize();
}

Products::Gpu GpuOf(const std::shared_ptr<CudaRuntime>& runtime) {
  return {
      .enter = [runtime] { runtime->Enter(); },
      .handle = [](kernels::Stream& stream) { return device::cuda::HandleOf(*stream.queue()); },
      .fail = [runtime](
                  const Status& error) { runtime->Keep(Annotate(error, runtime->description())); },
      .rehearse =
          [runtime](size_t bytes, const std::function<void(void*, kernels::Stream&)>& run) {
            return Rehearse(*runtime, bytes, run);
          }};
}

// Returns the index of the GPU that the options select.
StatusOr<int> NumberOf(const device::cuda::DriverApi& driver, const GpuOptions& options) {
  ASSIGN_OR_RETURN(const int gpus, device::cuda::CountGpus(driver));
  return gpus == 0 ? 0 : options.process % gpus;
}

StatusOr<Device> OpenCudaDevice(const GpuOptions& options) {
  RETURN_IF_ERROR(FindCudaDevice(options).status());
  ASSIGN_OR_RETURN(const device::cuda::DriverApi* const driver, device::cuda::OpenDriver());
  ASSIGN_OR_RETURN(const device::cuda::BlasApi* const blas, device::cuda::OpenBlas());
  return MakeCudaDevice({*driver, *blas, kernels::cuda::Images()}, options);
}

}  // namespace

StatusOr<std::string> FindCudaDevice(const GpuOptions& options) {
  if (kernels::cuda::Images().empty()) {  // checked before the GPU is used
    RETURN_IF_ERROR(device::cuda::FindDriver());
    return Unimplemented(
        "this machine has an NVIDIA driver, but this program was built without CUDA kernels, which "
        "--config=cuda adds");
  }
  ASSIGN_OR_RETURN(const device::cuda::DriverApi* const driver, device::cuda::OpenDriver());
  ASSIGN_OR_RETURN(const int number, NumberOf(*driver, options));
  ASSIGN_OR_RETURN(const auto gpu, device::cuda::FindGpu(*driver, number));
  return gpu.description;
}

StatusOr<Device> CudaDevice(ThreadPool* pool, const GpuOptions& options) {
  // The static objects are never destroyed, because programs may use the device until the process
  // exits.
  static const GpuOptions kOptions = options;
  static const auto* const kDevice = new StatusOr<Device>(OpenCudaDevice(kOptions));
  if (!kDevice->ok()) return kDevice->status();
  if (options != kOptions) {
    return FailedPrecondition("this process already uses a GPU with other options: use the same ",
                              "number, memory fraction and TF32 setting everywhere");
  }
  Device device = **kDevice;
  device.pool = pool;
  return device;
}

StatusOr<Device> MakeCudaDevice(const CudaParts& parts, const GpuOptions& options) {
  ASSIGN_OR_RETURN(const int number, NumberOf(parts.driver, options));
  ASSIGN_OR_RETURN(
      const auto runtime,
      CudaRuntime::Create(parts.driver, {.gpu = number, .memory_fraction = options.memory_fraction},
                          parts.images));
  // Load all kernels now, because the driver must not load any while a stream is capturing a
  // sequence.
  for (const char* const kernel : kernels::cuda::KernelNames())
    RETURN_IF_ERROR(runtime->FindKernel(kernel).status());
  ASSIGN_OR_RETURN(auto products, Products::Create(parts.blas, GpuOf(runtime)));
  const auto arithmetic =
      options.allow_tf32 ? kernels::cuda::Arithmetic::kTf32 : kernels::cuda::Arithmetic::kFloat32;
  Device device{.name = StrCat("/device:GPU:", number),
                .kernels = std::make_shared<const kernels::KernelTable>(kernels::cuda::MakeTable(
                    {LauncherOf(runtime), std::move(products), arithmetic})),
                .runtime = runtime,
                .row_stride = DenseRows,
                .recomputes = true,
                .reason = ""};
  return device;
}

}  // namespace tfjob::exec
