// Makes an NVIDIA GPU available as a device. A stream is a CUDA stream, and a captured sequence is
// a CUDA graph. Copies and kernels are submitted without waiting; if a submission fails, the
// runtime keeps the first error, and every later Synchronize returns it.
#pragma once

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
  // The part of the GPU's memory that this process may use, in (0, 1].
  double memory_fraction = 1;
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// A launch of a kernel with one parameter: `bytes` bytes, which are copied.
struct Launch {
  KernelHandle kernel = nullptr;
  std::string_view name;  // for error messages
  Dim3 grid, block;
  const void* parameter = nullptr;
  size_t bytes = 0;
};

class CudaRuntime final : public DeviceRuntime, public std::enable_shared_from_this<CudaRuntime> {
 public:
  // Returns the runtime of a GPU, with the kernels in `images`, which are fat binaries. Returns
  // InvalidArgument if the options are wrong, and FailedPrecondition if the GPU is older than the
  // kernels support. `driver` and the images must outlive the runtime.
  static StatusOr<std::shared_ptr<CudaRuntime>> Create(
      const DriverApi& driver, const CudaOptions& options,
      std::span<const std::span<const std::byte>> images);
  ~CudaRuntime() override;

  // Returns "NVIDIA H100 80GB HBM3 (GPU 0, compute capability 9.0)".
  const std::string& description() const { return description_; }
  int multiprocessors() const { return multiprocessors_; }

  // Returns the kernel of this name. Returns NotFound if no image contains it.
  StatusOr<KernelHandle> FindKernel(const std::string& name);
  // Submits a kernel. Submits nothing if the grid has no blocks.
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

 private:
  CudaRuntime(const DriverApi& driver, const CudaOptions& options);

  Status Open(std::span<const std::span<const std::byte>> images);
  // Makes the driver's functions use this GPU when called on this thread.
  void Enter() const { driver_.CtxSetCurrent(context_); }
  Status Check(Result result, std::string_view call) const {
    return ToStatus(driver_, result, call);
  }
  // Keeps the error if it is the first one.
  void Keep(Result result, std::string_view call);
  Status Failure();
  StatusOr<Memory> AllocateDevice(size_t bytes, Buffer::Contents contents, std::string_view name);
  void GiveBack(size_t bytes);
  StatusOr<Memory> AllocatePinned(size_t bytes, Buffer::Contents contents, std::string_view name);

  const DriverApi& driver_;
  const CudaOptions options_;
  Device device_ = 0;
  Context context_ = nullptr;
  std::string description_;
  int multiprocessors_ = 0;
  size_t limit_ = 0;  // bytes of device memory
  std::vector<LibraryHandle> libraries_;

  Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, KernelHandle> kernels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::device::cuda
