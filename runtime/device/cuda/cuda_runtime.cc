#include "runtime/device/cuda/cuda_runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/device/cpu_runtime.h"

namespace tfjob::device::cuda {
namespace {

DeviceAddress Address(const void* pointer) {
  return reinterpret_cast<DeviceAddress>(pointer);
}

// These classes own their handles, and keep the runtime alive, because the handles belong to its
// context.
class CudaStream final : public Stream {
 public:
  CudaStream(std::shared_ptr<CudaRuntime> runtime, const DriverApi& driver, StreamHandle handle)
      : runtime(std::move(runtime)), driver(driver), handle(handle) {}
  // Waits for the stream's operations, because their operands may be freed as soon as the stream is
  // destroyed. The driver would not wait; it would only keep the handle's resources until the
  // operations have run.
  ~CudaStream() override {
    runtime->Enter();
    runtime->Keep(driver.StreamSynchronize(handle), "cuStreamSynchronize");
    runtime->Keep(driver.StreamDestroy(handle), "cuStreamDestroy");
  }
  const std::shared_ptr<CudaRuntime> runtime;
  const DriverApi& driver;
  const StreamHandle handle;
};

class CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<CudaRuntime> runtime, const DriverApi& driver, EventHandle handle)
      : runtime(std::move(runtime)), driver(driver), handle(handle) {}
  ~CudaEvent() override {
    runtime->Enter();
    runtime->Keep(driver.EventDestroy(handle), "cuEventDestroy");
  }
  const std::shared_ptr<CudaRuntime> runtime;
  const DriverApi& driver;
  const EventHandle handle;
};

class CudaSequence final : public Sequence {
 public:
  CudaSequence(std::shared_ptr<CudaRuntime> runtime, const DriverApi& driver,
               GraphExecHandle handle)
      : runtime(std::move(runtime)), driver(driver), handle(handle) {}
  // The driver needs no context to destroy a graph.
  ~CudaSequence() override { driver.GraphExecDestroy(handle); }
  const std::shared_ptr<CudaRuntime> runtime;
  const DriverApi& driver;
  const GraphExecHandle handle;
};

EventHandle HandleOf(const Event& event) {
  return static_cast<const CudaEvent&>(event).handle;
}

}  // namespace

StreamHandle HandleOf(Stream& stream) {
  return static_cast<CudaStream&>(stream).handle;
}

StatusOr<int> CountGpus(const DriverApi& driver) {
  int count = 0;
  RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGetCount(&count), "cuDeviceGetCount"));
  return count;
}

StatusOr<SupportedGpu> FindGpu(const DriverApi& driver, int number) {
  int major = 0, minor = 0;
  ASSIGN_OR_RETURN(const int count, CountGpus(driver));
  if (number < 0 || number >= count) {
    return InvalidArgument("GPU ", number, " does not exist: the driver shows ", count,
                           " GPUs, which are numbered from 0");
  }
  SupportedGpu gpu;
  RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGet(&gpu.device, number), "cuDeviceGet"));
  std::array<char, 256> name{};
  RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGetName(name.data(), name.size() - 1, gpu.device),
                           "cuDeviceGetName"));
  const auto attribute = [&](int* value, unsigned which) {
    return ToStatus(driver, driver.DeviceGetAttribute(value, which, gpu.device),
                    "cuDeviceGetAttribute");
  };
  RETURN_IF_ERROR(attribute(&major, kAttributeComputeMajor));
  RETURN_IF_ERROR(attribute(&minor, kAttributeComputeMinor));
  gpu.description =
      StrCat(name.data(), " (GPU ", number, ", compute capability ", major, ".", minor, ")");
  if (10 * major + minor < kOldestCompute) {
    return FailedPrecondition(gpu.description,
                              " is too old: this program needs compute capability ",
                              kOldestCompute / 10, ".", kOldestCompute % 10, " or newer");
  }
  return gpu;
}

StatusOr<std::shared_ptr<CudaRuntime>> CudaRuntime::Create(
    const DriverApi& driver, const CudaOptions& options,
    std::span<const std::span<const std::byte>> images) {
  if (!(options.memory_fraction > 0 && options.memory_fraction <= 1)) {
    return InvalidArgument("the fraction of the GPU's memory is ", options.memory_fraction,
                           ": expected a number above 0 and at most 1");
  }
  std::shared_ptr<CudaRuntime> runtime(new CudaRuntime(driver, options));
  RETURN_IF_ERROR(runtime->Open(images));
  return runtime;
}

CudaRuntime::CudaRuntime(const DriverApi& driver, const CudaOptions& options)
    : driver_(driver), options_(options) {}

CudaRuntime::~CudaRuntime() {
  if (context_ == nullptr) return;
  Enter();
  for (const LibraryHandle library : libraries_) driver_.LibraryUnload(library);
  driver_.CtxSetCurrent(nullptr);  // no thread may use the context any more
  driver_.DevicePrimaryCtxRelease(device_);
}

Status CudaRuntime::Open(std::span<const std::span<const std::byte>> images) {
  ASSIGN_OR_RETURN(const SupportedGpu gpu, FindGpu(driver_, options_.gpu));
  device_ = gpu.device;
  description_ = gpu.description;
  RETURN_IF_ERROR(Check(driver_.DeviceGetUuid(uuid_.data(), device_), "cuDeviceGetUuid"));
  RETURN_IF_ERROR(
      Check(driver_.DevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain"));
  Enter();
  size_t free = 0, total = 0;
  RETURN_IF_ERROR(Check(driver_.MemGetInfo(&free, &total), "cuMemGetInfo"));
  limit_ = static_cast<size_t>(static_cast<double>(total) * options_.memory_fraction);
  for (const std::span<const std::byte> image : images) {
    LibraryHandle library = nullptr;
    RETURN_IF_ERROR(Check(
        driver_.LibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadData"));
    libraries_.push_back(library);
  }
  return OkStatus();
}

Status CudaRuntime::Check(Result result, std::string_view call) const {
  if (result == kSuccess) return OkStatus();
  const std::string what = IsFaultOfOperation(result)
                               ? StrCat("an operation submitted before ", call, " failed")
                               : std::string(call);
  return ToStatus(driver_, result, description_.empty() ? what : StrCat(description_, ": ", what));
}

void CudaRuntime::Keep(Result result, std::string_view call) {
  if (result != kSuccess) Keep(Check(result, call));
}

void CudaRuntime::Keep(const Status& error) {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = error;
}

Status CudaRuntime::Failure() {
  MutexLock lock(mutex_);
  return failure_;
}

StatusOr<CudaKernel> CudaRuntime::FindKernel(const std::string& name) {
  MutexLock lock(mutex_);
  if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
  Enter();
  for (const LibraryHandle library : libraries_) {
    CudaKernel kernel;
    KernelHandle handle = nullptr;
    const Result result = driver_.LibraryGetKernel(&handle, library, name.c_str());
    if (result == kNotFound) continue;
    RETURN_IF_ERROR(Check(result, StrCat("cuLibraryGetKernel of ", name)));
    size_t offset = 0;
    RETURN_IF_ERROR(Check(driver_.KernelGetParamInfo(handle, 0, &offset, &kernel.parameter_bytes),
                          StrCat("cuKernelGetParamInfo of ", name)));
    RETURN_IF_ERROR(Check(driver_.KernelGetFunction(&kernel.handle, handle),
                          StrCat("cuKernelGetFunction of ", name)));
    kernels_.emplace(name, kernel);
    return kernel;
  }
  return NotFound("this program contains no CUDA kernel ", name);
}

void CudaRuntime::Submit(const Launch& launch, Stream& stream) {
  if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0) return;
  // Reject a parameter of another size: the driver copies as many bytes as the image declares, so
  // it would read past the end of a smaller parameter.
  if (launch.bytes != launch.kernel.parameter_bytes) {
    return Keep(Internal(description_, ": ", launch.name, " got a parameter of ", launch.bytes,
                         " bytes, but its image has one of ", launch.kernel.parameter_bytes));
  }
  Enter();
  std::array<void*, 1> parameters = {const_cast<void*>(launch.parameter)};
  Keep(driver_.LaunchKernel(launch.kernel.handle, launch.grid.x, launch.grid.y, launch.grid.z,
                            launch.block.x, launch.block.y, launch.block.z, 0, HandleOf(stream),
                            parameters.data(), nullptr),
       launch.name);
}

StatusOr<Memory> CudaRuntime::Allocate(MemoryKind kind, size_t bytes, Buffer::Contents contents,
                                       std::string_view name) {
  if (kind == MemoryKind::kHost) return CpuRuntime()->Allocate(kind, bytes, contents, name);
  // Allocate at least 1 byte: the driver refuses to allocate 0 bytes, but even empty tensors need
  // an address.
  const size_t rounded = std::max<size_t>(bytes, 1);
  Enter();
  return kind == MemoryKind::kDevice ? AllocateDevice(rounded, contents, name)
                                     : AllocatePinned(rounded, contents, name);
}

StatusOr<Memory> CudaRuntime::AllocateDevice(size_t bytes, Buffer::Contents contents,
                                             std::string_view name) {
  {
    MutexLock lock(mutex_);
    if (bytes > limit_ - used_) {
      return ResourceExhausted(name, " needs ", bytes, " bytes, but of the ", limit_,
                               " bytes that this process may use on ", description_, ", ", used_,
                               " are in use");
    }
    used_ += bytes;
  }
  DeviceAddress address = 0;
  if (const Result result = driver_.MemAlloc(&address, bytes); result != kSuccess) {
    GiveBack(bytes);
    return OutOfMemory(result, bytes, name);
  }
  Memory memory(reinterpret_cast<void*>(address), [self = shared_from_this(), bytes](void* freed) {
    self->Enter();
    self->Keep(self->driver_.MemFree(Address(freed)), "cuMemFree");
    self->GiveBack(bytes);
  });
  if (contents == Buffer::Contents::kZero) {
    RETURN_IF_ERROR(Check(driver_.MemsetD8(address, 0, bytes), "cuMemsetD8"));
    RETURN_IF_ERROR(AwaitNullStream());
  }
  return memory;
}

Status CudaRuntime::OutOfMemory(Result result, size_t bytes, std::string_view name) {
  std::string what = StrCat(name, " needs ", bytes, " bytes");
  size_t free = 0, total = 0;
  if (result == kOutOfMemory && driver_.MemGetInfo(&free, &total) == kSuccess) {
    what += StrCat(", but the GPU has ", free, " of ", total, " bytes free");
    MutexLock lock(mutex_);
    const size_t others = total - std::min(total, free + used_);
    // The driver itself and the kernels' code use a small part of the memory.
    if (others > total / 10) {
      what += StrCat(", because other processes use up to ", others,
                     " bytes: end them or, if several tasks share this GPU, set "
                     "gpu.memory_fraction in their training files, so that the fractions add up to "
                     "less than 1");
    }
  }
  return Annotate(Check(result, "cuMemAlloc"), what);
}

void CudaRuntime::GiveBack(size_t bytes) {
  MutexLock lock(mutex_);
  used_ -= bytes;
}

StatusOr<Memory> CudaRuntime::AllocatePinned(size_t bytes, Buffer::Contents contents,
                                             std::string_view name) {
  void* address = nullptr;
  RETURN_IF_ERROR(
      Annotate(Check(driver_.MemHostAlloc(&address, bytes, kHostAllocPortable), "cuMemHostAlloc"),
               StrCat(name, " needs ", bytes, " bytes of pinned memory")));
  if (contents == Buffer::Contents::kZero) std::memset(address, 0, bytes);
  return Memory(address, [self = shared_from_this()](void* freed) {
    self->Enter();
    self->Keep(self->driver_.MemFreeHost(freed), "cuMemFreeHost");
  });
}

StatusOr<std::unique_ptr<Stream>> CudaRuntime::NewStream() {
  Enter();
  StreamHandle handle = nullptr;
  RETURN_IF_ERROR(Check(driver_.StreamCreate(&handle, kStreamNonBlocking), "cuStreamCreate"));
  return std::make_unique<CudaStream>(shared_from_this(), driver_, handle);
}

StatusOr<std::unique_ptr<Event>> CudaRuntime::NewEvent() {
  Enter();
  EventHandle handle = nullptr;
  RETURN_IF_ERROR(Check(driver_.EventCreate(&handle, kEventBlockingSync | kEventDisableTiming),
                        "cuEventCreate"));
  return std::make_unique<CudaEvent>(shared_from_this(), driver_, handle);
}

void CudaRuntime::Copy(void* to, const void* from, size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  Enter();
  Keep(driver_.MemcpyAsync(Address(to), Address(from), bytes, HandleOf(stream)), "cuMemcpyAsync");
}

void CudaRuntime::Record(Event& event, Stream& stream) {
  Enter();
  Keep(driver_.EventRecord(HandleOf(event), HandleOf(stream)), "cuEventRecord");
}

void CudaRuntime::Wait(Stream& stream, const Event& event) {
  Enter();
  Keep(driver_.StreamWaitEvent(HandleOf(stream), HandleOf(event), 0), "cuStreamWaitEvent");
}

StatusOr<bool> CudaRuntime::HasRun(const Event& event) {
  Enter();
  const Result result = driver_.EventQuery(HandleOf(event));
  if (result != kNotReady) Keep(result, "cuEventQuery");
  RETURN_IF_ERROR(Failure());
  return result == kSuccess;
}

Status CudaRuntime::Synchronize(const Event& event) {
  Enter();
  Keep(driver_.EventSynchronize(HandleOf(event)), "cuEventSynchronize");
  return Failure();
}

Status CudaRuntime::Synchronize() {
  Enter();
  Keep(driver_.CtxSynchronize(), "cuCtxSynchronize");
  return Failure();
}

Status CudaRuntime::Read(void* to, const void* from, size_t bytes) {
  RETURN_IF_ERROR(Synchronize());
  if (bytes == 0) return OkStatus();
  Keep(driver_.MemcpyDtoH(to, Address(from), bytes), "cuMemcpyDtoH");
  return Failure();
}

Status CudaRuntime::Write(void* to, const void* from, size_t bytes) {
  RETURN_IF_ERROR(Synchronize());
  if (bytes == 0) return OkStatus();
  Keep(driver_.MemcpyHtoD(Address(to), from, bytes), "cuMemcpyHtoD");
  RETURN_IF_ERROR(Failure());
  return AwaitNullStream();
}

Status CudaRuntime::AwaitNullStream() {
  return Check(driver_.StreamSynchronize(nullptr), "cuStreamSynchronize");
}

// The driver captures in thread-local mode, in which other threads may allocate memory during the
// capture.
Status CudaRuntime::BeginCapture(Stream& stream) {
  Enter();
  return Check(driver_.StreamBeginCapture(HandleOf(stream), kCaptureThreadLocal),
               "cuStreamBeginCapture");
}

StatusOr<std::unique_ptr<Sequence>> CudaRuntime::EndCapture(Stream& stream) {
  Enter();
  GraphHandle graph = nullptr;
  const Result ended = driver_.StreamEndCapture(HandleOf(stream), &graph);
  // Return the first error if there is one, because cuStreamEndCapture reports only that the
  // capture was invalidated.
  Status status = Failure();
  if (status.ok()) status = Check(ended, "cuStreamEndCapture");
  GraphExecHandle executable = nullptr;
  if (status.ok())
    status = Check(driver_.GraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
  if (graph != nullptr) driver_.GraphDestroy(graph);
  RETURN_IF_ERROR(status);
  return std::make_unique<CudaSequence>(shared_from_this(), driver_, executable);
}

void CudaRuntime::Replay(const Sequence& sequence, Stream& stream) {
  Enter();
  Keep(driver_.GraphLaunch(static_cast<const CudaSequence&>(sequence).handle, HandleOf(stream)),
       "cuGraphLaunch");
}

}  // namespace tfjob::device::cuda
