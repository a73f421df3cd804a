#include "runtime/device/cuda/fake_driver.h"

#include <cstring>
#include <memory>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/device/fake_runtime.h"

namespace tfjob::device::cuda {
namespace {

constexpr Result kInvalidValue = 1;
constexpr Result kInvalidDevice = 101;
constexpr Result kInvalidContext = 201;
constexpr Result kInvalidImage = 200;

// The objects behind the handles.
struct FakeStreamObject {
  std::unique_ptr<Stream> stream;
};
struct FakeEventObject {
  std::unique_ptr<Event> event;
};
struct FakeGraphObject {
  std::shared_ptr<Sequence> sequence;
};

struct Machine {
  explicit Machine(FakeMachine machine)
      : description(std::move(machine)),
        runtime(FakeRuntime::Create(
            {.seed = description.seed,
             .memory_bytes = description.gpus.empty() ? 0 : description.gpus[0].memory_bytes})) {}

  const FakeMachine description;
  const std::shared_ptr<FakeRuntime> runtime;
  Mutex mutex;
  std::map<uint64_t, std::pair<Memory, size_t>> memory ABSL_GUARDED_BY(mutex);  // by address
  std::map<std::string, int> calls ABSL_GUARDED_BY(mutex);
  size_t used ABSL_GUARDED_BY(mutex) = 0;
};

Machine* machine = nullptr;
thread_local bool has_context = false;

template <typename Object, typename Handle>
Object* From(Handle handle) {
  return reinterpret_cast<Object*>(handle);
}

// Counts the call. Returns the error that the machine prescribes for this function, or kSuccess.
Result Begin(const char* symbol, bool needs_context = true) {
  MutexLock lock(machine->mutex);
  ++machine->calls[symbol];
  const auto failure = machine->description.failures.find(symbol);
  if (failure != machine->description.failures.end()) return failure->second;
  return needs_context && !has_context ? kInvalidContext : kSuccess;
}
#define TFJOB_BEGIN(...) \
  if (const Result result_ = Begin(__VA_ARGS__); result_ != kSuccess) return result_

Result GetErrorName(Result result, const char** name) {
  switch (result) {
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kSuccess;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      return kSuccess;
    case kInvalidImage:
      *name = "CUDA_ERROR_INVALID_IMAGE";
      return kSuccess;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
}

Result GetErrorString(Result result, const char** text) {
  *text = result == kOutOfMemory ? "out of memory" : nullptr;
  return *text != nullptr ? kSuccess : kInvalidValue;
}

Result Init(unsigned) {
  TFJOB_BEGIN("cuInit", false);
  return machine->description.gpus.empty() ? kNoDevice : kSuccess;
}

Result DriverGetVersion(int* version) {
  TFJOB_BEGIN("cuDriverGetVersion", false);
  *version = machine->description.driver_version;
  return kSuccess;
}

Result DeviceGetCount(int* count) {
  TFJOB_BEGIN("cuDeviceGetCount", false);
  *count = static_cast<int>(machine->description.gpus.size());
  return kSuccess;
}

const FakeGpu& Gpu(Device device) {
  return machine->description.gpus[static_cast<size_t>(device)];
}

Result DeviceGet(Device* device, int ordinal) {
  TFJOB_BEGIN("cuDeviceGet", false);
  if (ordinal < 0 || ordinal >= static_cast<int>(machine->description.gpus.size()))
    return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

Result DeviceGetName(char* name, int length, Device device) {
  TFJOB_BEGIN("cuDeviceGetName", false);
  std::strncpy(name, Gpu(device).name.c_str(), static_cast<size_t>(length));
  return kSuccess;
}

Result DeviceGetAttribute(int* value, unsigned attribute, Device device) {
  TFJOB_BEGIN("cuDeviceGetAttribute", false);
  const FakeGpu& gpu = Gpu(device);
  switch (attribute) {
    case kAttributeComputeMajor:
      *value = gpu.compute_major;
      return kSuccess;
    case kAttributeComputeMinor:
      *value = gpu.compute_minor;
      return kSuccess;
    case kAttributeMultiprocessors:
      *value = gpu.multiprocessors;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

Result DevicePrimaryCtxRetain(Context* context, Device) {
  TFJOB_BEGIN("cuDevicePrimaryCtxRetain", false);
  *context = reinterpret_cast<Context>(machine);
  return kSuccess;
}

Result DevicePrimaryCtxRelease(Device) {
  return Begin("cuDevicePrimaryCtxRelease_v2", false);
}

Result CtxSetCurrent(Context context) {
  TFJOB_BEGIN("cuCtxSetCurrent", false);
  has_context = context != nullptr;
  return kSuccess;
}

Result CtxSynchronize() {
  TFJOB_BEGIN("cuCtxSynchronize");
  return machine->runtime->Synchronize().ok() ? kSuccess : kInvalidValue;
}

Result MemGetInfo(size_t* free, size_t* total) {
  TFJOB_BEGIN("cuMemGetInfo_v2");
  MutexLock lock(machine->mutex);
  *total = machine->description.gpus[0].memory_bytes;
  *free = *total - machine->used;
  return kSuccess;
}

// Allocates memory without a name and with undefined content, as the driver does.
Result AllocateMemory(MemoryKind kind, size_t bytes, uint64_t* address) {
  if (bytes == 0) return kInvalidValue;
  auto memory = machine->runtime->Allocate(kind, bytes, Buffer::Contents::kUndefined,
                                           StrCat(Name(kind), " memory of ", bytes, " bytes"));
  if (!memory.ok()) return kOutOfMemory;
  *address = reinterpret_cast<uint64_t>(memory->get());
  MutexLock lock(machine->mutex);
  machine->memory[*address] = {*std::move(memory), bytes};
  if (kind == MemoryKind::kDevice) machine->used += bytes;
  return kSuccess;
}

Result FreeMemory(uint64_t address, MemoryKind kind) {
  std::pair<Memory, size_t> freed;  // freed after the lock is released
  MutexLock lock(machine->mutex);
  const auto found = machine->memory.find(address);
  if (found == machine->memory.end()) return kInvalidValue;
  freed = std::move(found->second);
  machine->memory.erase(found);
  if (kind == MemoryKind::kDevice) machine->used -= freed.second;
  return kSuccess;
}

Result MemAlloc(DeviceAddress* address, size_t bytes) {
  TFJOB_BEGIN("cuMemAlloc_v2");
  return AllocateMemory(MemoryKind::kDevice, bytes, address);
}

Result MemFree(DeviceAddress address) {
  TFJOB_BEGIN("cuMemFree_v2");
  return FreeMemory(address, MemoryKind::kDevice);
}

Result MemHostAlloc(void** pointer, size_t bytes, unsigned) {
  TFJOB_BEGIN("cuMemHostAlloc");
  uint64_t address = 0;
  const Result result = AllocateMemory(MemoryKind::kPinned, bytes, &address);
  *pointer = reinterpret_cast<void*>(address);
  return result;
}

Result MemFreeHost(void* pointer) {
  TFJOB_BEGIN("cuMemFreeHost");
  return FreeMemory(reinterpret_cast<uint64_t>(pointer), MemoryKind::kPinned);
}

Result MemcpyHtoD(DeviceAddress to, const void* from, size_t bytes) {
  TFJOB_BEGIN("cuMemcpyHtoD_v2");
  return machine->runtime->Write(reinterpret_cast<void*>(to), from, bytes).ok() ? kSuccess
                                                                                : kInvalidValue;
}

Result MemcpyDtoH(void* to, DeviceAddress from, size_t bytes) {
  TFJOB_BEGIN("cuMemcpyDtoH_v2");
  return machine->runtime->Read(to, reinterpret_cast<void*>(from), bytes).ok() ? kSuccess
                                                                               : kInvalidValue;
}

Result MemcpyAsync(DeviceAddress to, DeviceAddress from, size_t bytes, StreamHandle stream) {
  TFJOB_BEGIN("cuMemcpyAsync");
  machine->runtime->Copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes,
                         *From<FakeStreamObject>(stream)->stream);
  return kSuccess;
}

Result MemsetD8(DeviceAddress to, unsigned char value, size_t bytes) {
  TFJOB_BEGIN("cuMemsetD8_v2");
  const std::vector<unsigned char> content(bytes, value);
  return machine->runtime->Write(reinterpret_cast<void*>(to), content.data(), bytes).ok()
             ? kSuccess
             : kInvalidValue;
}

Result StreamCreate(StreamHandle* handle, unsigned) {
  TFJOB_BEGIN("cuStreamCreate");
  *handle = reinterpret_cast<StreamHandle>(new FakeStreamObject{*machine->runtime->NewStream()});
  return kSuccess;
}

Result StreamDestroy(StreamHandle handle) {
  TFJOB_BEGIN("cuStreamDestroy_v2", false);
  delete From<FakeStreamObject>(handle);
  return kSuccess;
}

Result StreamSynchronize(StreamHandle handle) {
  TFJOB_BEGIN("cuStreamSynchronize", false);
  const auto event = *machine->runtime->NewEvent();
  machine->runtime->Record(*event, *From<FakeStreamObject>(handle)->stream);
  return machine->runtime->Synchronize(*event).ok() ? kSuccess : kInvalidValue;
}

Result StreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  TFJOB_BEGIN("cuStreamWaitEvent");
  machine->runtime->Wait(*From<FakeStreamObject>(stream)->stream,
                         *From<FakeEventObject>(event)->event);
  return kSuccess;
}

Result EventCreate(EventHandle* handle, unsigned) {
  TFJOB_BEGIN("cuEventCreate");
  *handle = reinterpret_cast<EventHandle>(new FakeEventObject{*machine->runtime->NewEvent()});
  return kSuccess;
}

Result EventDestroy(EventHandle handle) {
  TFJOB_BEGIN("cuEventDestroy_v2", false);
  delete From<FakeEventObject>(handle);
  return kSuccess;
}

Result EventRecord(EventHandle event, StreamHandle stream) {
  TFJOB_BEGIN("cuEventRecord");
  machine->runtime->Record(*From<FakeEventObject>(event)->event,
                           *From<FakeStreamObject>(stream)->stream);
  return kSuccess;
}

Result EventSynchronize(EventHandle event) {
  TFJOB_BEGIN("cuEventSynchronize");
  return machine->runtime->Synchronize(*From<FakeEventObject>(event)->event).ok() ? kSuccess
                                                                                  : kInvalidValue;
}

Result StreamBeginCapture(StreamHandle stream, unsigned) {
  TFJOB_BEGIN("cuStreamBeginCapture_v2");
  return machine->runtime->BeginCapture(*From<FakeStreamObject>(stream)->stream).ok()
             ? kSuccess
             : kInvalidValue;
}

Result StreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  TFJOB_BEGIN("cuStreamEndCapture");
  auto sequence = machine->runtime->EndCapture(*From<FakeStreamObject>(stream)->stream);
  if (!sequence.ok()) return kInvalidValue;
  *graph = reinterpret_cast<GraphHandle>(new FakeGraphObject{*std::move(sequence)});
  return kSuccess;
}

Result GraphInstantiate(GraphExecHandle* executable, GraphHandle graph, unsigned long long) {
  TFJOB_BEGIN("cuGraphInstantiateWithFlags");
  *executable = reinterpret_cast<GraphExecHandle>(
      new FakeGraphObject{From<FakeGraphObject>(graph)->sequence});
  return kSuccess;
}

Result GraphDestroy(GraphHandle graph) {
  TFJOB_BEGIN("cuGraphDestroy", false);
  delete From<FakeGraphObject>(graph);
  return kSuccess;
}

Result GraphExecDestroy(GraphExecHandle graph) {
  TFJOB_BEGIN("cuGraphExecDestroy", false);
  delete From<FakeGraphObject>(graph);
  return kSuccess;
}

Result GraphLaunch(GraphExecHandle graph, StreamHandle stream) {
  TFJOB_BEGIN("cuGraphLaunch");
  machine->runtime->Replay(*From<FakeGraphObject>(graph)->sequence,
                           *From<FakeStreamObject>(stream)->stream);
  return kSuccess;
}

// The content of an image does not matter, because the machine describes the kernels.
Result LibraryLoadData(LibraryHandle* library, const void* image, unsigned*, void**, unsigned,
                       unsigned*, void**, unsigned) {
  TFJOB_BEGIN("cuLibraryLoadData");
  *library = reinterpret_cast<LibraryHandle>(machine);
  return image == nullptr ? kInvalidImage : kSuccess;
}

Result LibraryUnload(LibraryHandle) {
  return Begin("cuLibraryUnload");
}

Result LibraryGetKernel(KernelHandle* kernel, LibraryHandle, const char* name) {
  TFJOB_BEGIN("cuLibraryGetKernel");
  const auto found = machine->description.kernels.find(name);
  if (found == machine->description.kernels.end()) return kNotFound;
  *kernel = reinterpret_cast<KernelHandle>(const_cast<void*>(static_cast<const void*>(&*found)));
  return kSuccess;
}

// The words of a parameter that are addresses in the machine's memory: their offsets, and the
// accesses that are assumed. The fake driver does not know which bytes a kernel reads or writes, so
// it assumes that the kernel writes the byte at each address.
struct Addresses {
  std::vector<size_t> offsets;
  std::vector<Access> accesses;
};

Addresses FindAddresses(std::span<const std::byte> parameter) {
  Addresses found;
  MutexLock lock(machine->mutex);
  for (size_t offset = 0; offset + sizeof(uint64_t) <= parameter.size();
       offset += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, parameter.data() + offset, sizeof word);
    auto block = machine->memory.upper_bound(word);
    if (block == machine->memory.begin()) continue;
    --block;
    if (word >= block->first + block->second.second) continue;
    found.offsets.push_back(offset);
    found.accesses.push_back({reinterpret_cast<const void*>(word), 1, /*writes=*/true});
  }
  return found;
}

Result LaunchKernel(KernelHandle handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                    StreamHandle stream, void** parameters, void**) {
  TFJOB_BEGIN("cuLaunchKernel");
  // CUDA has these limits on every GPU.
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_y > 65535 || grid_z > 65535 ||
      block_x * block_y * block_z == 0 || block_x * block_y * block_z > 1024) {
    return kInvalidValue;
  }
  const auto& [name, kernel] = *From<const std::pair<const std::string, FakeKernel>>(handle);
  const auto* const bytes = static_cast<const std::byte*>(parameters[0]);
  std::vector<std::byte> parameter(bytes, bytes + kernel.parameter_bytes);
  Addresses addresses = FindAddresses(parameter);
  Operation operation{.name = name, .accesses = std::move(addresses.accesses), .run = {}};
  operation.run = [&kernel, parameter, offsets = std::move(addresses.offsets),
                   launch = FakeLaunch{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {}}](
                      std::span<void* const> storage) mutable {
    for (size_t i = 0; i < offsets.size(); ++i)
      std::memcpy(parameter.data() + offsets[i], &storage[i], sizeof(void*));
    launch.parameter = parameter;
    kernel.run(launch);
  };
  machine->runtime->Submit(std::move(operation), *From<FakeStreamObject>(stream)->stream);
  return kSuccess;
}

}  // namespace

const DriverApi& FakeDriver(FakeMachine description) {
  delete machine;
  machine = new Machine(std::move(description));
  has_context = false;
#define TFJOB_CUDA_FAKE(name, symbol, ...) .name = name,
  static constexpr DriverApi kDriver{TFJOB_CUDA_DRIVER_FUNCTIONS(TFJOB_CUDA_FAKE)};
#undef TFJOB_CUDA_FAKE
  return kDriver;
}

std::map<std::string, int> FakeDriverCalls() {
  MutexLock lock(machine->mutex);
  return machine->calls;
}

}  // namespace tfjob::device::cuda
