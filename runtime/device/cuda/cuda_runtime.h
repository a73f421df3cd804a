// Makes an NVIDIA GPU available as a device. A stream is a CUDA stream, and a captured sequence is
// a CUDA graph. Copies and kernels are submitted without waiting. If a submission fails, the
// runtime keeps the first error, and every later Synchronize returns it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/driver_api.h"
#include "runtime/device/device_runtime.h"

namespace tfjob::device::cuda {

struct CudaOptions {
  int gpu = 0;  // index among the GPUs that CUDA_VISIBLE_DEVICES leaves visible
  // The fraction of the GPU's memory that this process may use, in (0, 1].
  double memory_fraction = 1;
};

using Uuid = std::array<char, kUuidBytes>;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// A GPU that the kernels support.
struct SupportedGpu {
  Device device = 0;
  std::string description;  // "NVIDIA H100 80GB HBM3 (GPU 0, compute capability 9.0)"
};
// Returns the number of GPUs that CUDA_VISIBLE_DEVICES leaves visible.
StatusOr<int> CountGpus(const DriverApi& driver);

// Returns the GPU at this index (CudaOptions::gpu), without creating a context on it. Returns
// InvalidArgument if there is no such GPU, and FailedPrecondition if the kernels do not support it
// because it is too old.
StatusOr<SupportedGpu> FindGpu(const DriverApi& driver, int number);

// A kernel in an image, and the size of its parameter in that image.
struct CudaKernel {
  FunctionHandle handle = nullptr;
  size_t parameter_bytes = 0;
};

// A launch of a kernel. Its only parameter consists of `bytes` bytes, which are copied.
struct Launch {
  CudaKernel kernel;
  std::string_view name;  // for error messages
  Dim3 grid, block;
  const void* parameter = nullptr;
  size_t bytes = 0;
};

// Returns the driver's handle of a stream of a CudaRuntime.
StreamHandle HandleOf(Stream& stream);

class CudaRuntime final : public DeviceRuntime, public std::enable_shared_from_this<CudaRuntime> {
 public:
  // Returns the runtime of a GPU, with the kernels in `images`, which are fat binaries. Returns
  // InvalidArgument if the options are wrong, and FailedPrecondition if the kernels do not support
  // the GPU because it is too old. `driver` and the images must outlive the runtime.
  static StatusOr<std::shared_ptr<CudaRuntime>> Create(
      const DriverApi& driver, const CudaOptions& options,
      std::span<const std::span<const std::byte>> images);
  ~CudaRuntime() override;

  const std::string& description() const { return description_; }  // SupportedGpu::description
  // Identifies the GPU among all GPUs of all machines. A part of a GPU (MIG) has its own UUID.
  const Uuid& uuid() const { return uuid_; }

  // Returns the kernel of this name, or NotFound if no image contains it. The first call for a name
  // loads the kernel, which the driver refuses to do on a thread that is capturing a stream.
  StatusOr<CudaKernel> FindKernel(const std::string& name);
  // Returns whether all operations that the event covers have run, without waiting for them.
  // Returns the error if the device has failed.
  StatusOr<bool> HasRun(const Event& event);
  // Submits a kernel, unless the grid has no blocks. The submission fails if the parameter's size
  // differs from its size in the image.
  void Submit(const Launch& launch, Stream& stream);

  bool immediate() const override { return false; }
  StatusOr<Memory> Allocate(MemoryKind kind, size_t bytes, Buffer::Contents contents,
                            std::string_view name) override;
  StatusOr<std::unique_ptr<Stream>> NewStream() override;
  StatusOr<std::unique_ptr<Event>> NewEvent() override;
  void Copy(void* to, const void* from, size_t bytes, Stream& stream) override;
  void Record(Event& event, Stream& stream) override;
  void Wait(Stream& stream, const Event& event) override;
  Status Synchronize(const Event& event) override;
  Status Synchronize() override;
  Status Read(void* to, const void* from, size_t bytes) override;
  Status Write(void* to, const void* from, size_t bytes) override;
  Status BeginCapture(Stream& stream) override;
  StatusOr<std::unique_ptr<Sequence>> EndCapture(Stream& stream) override;
  void Replay(const Sequence& sequence, Stream& stream) override;

  // The next functions are for the runtime's own objects, such as its streams and events.
  //
  // Makes the driver's functions use this GPU when called on this thread.
  void Enter() const { driver_.CtxSetCurrent(context_); }
  // Keeps the error if it is the first one.
  void Keep(Result result, std::string_view call);
  void Keep(const Status& error);

 private:
  CudaRuntime(const DriverApi& driver, const CudaOptions& options);

  Status Open(std::span<const std::span<const std::byte>> images);
  // Converts the result of a driver function, which `call` names, to a status. The message names
  // the GPU. If an operation submitted earlier has failed, rather than this call, the message says
  // so.
  Status Check(Result result, std::string_view call) const;
  Status OutOfMemory(Result result, size_t bytes, std::string_view name);
  Status Failure();
  // Waits for the NULL stream, on which the driver sets memory and copies from pageable memory. The
  // driver's functions return before the GPU has finished, and no stream of this runtime waits for
  // the NULL stream.
  Status AwaitNullStream();
  StatusOr<Memory> AllocateDevice(size_t bytes, Buffer::Contents contents, std::string_view name);
  void GiveBack(size_t bytes);
  StatusOr<Memory> AllocatePinned(size_t bytes, Buffer::Contents contents, std::string_view name);

  const DriverApi& driver_;
  const CudaOptions options_;
  Device device_ = 0;
  Context context_ = nullptr;
  std::string description_;
  Uuid uuid_{};
  size_t limit_ = 0;  // bytes of device memory
  std::vector<LibraryHandle> libraries_;

  Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, CudaKernel> kernels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::device::cuda
