#include "runtime/device/cuda/fake_driver.h"

#include <cstring>
#include <thread>
#include <utility>

#include "runtime/base/mutex.h"
#include "runtime/device/cuda/fake_errors.h"
#include "runtime/device/cuda/fake_launch.h"
#include "runtime/device/fake_runtime.h"

namespace tfjob::device::cuda {
namespace {

// A capture in progress. It ends with an error if any call on its thread has been refused.
struct Capture {
  std::thread::id thread;
  bool invalidated = false;
};
// The object behind the handle of a graph. Other handles point to objects of the fake device.
struct FakeGraphObject {
  std::shared_ptr<Sequence> sequence;
};

struct Machine {
  explicit Machine(FakeMachine machine)
      : description(std::move(machine)),
        runtime(FakeRuntime::Create(
            {.seed = description.seed,
             .memory_bytes = description.gpus.empty() ? 0 : description.gpus[0].memory_bytes,
             .allocate = description.allocate,
             .seconds = description.seconds,
             .threads_are_processes = description.threads_are_processes})) {}

  const FakeMachine description;
  const std::shared_ptr<FakeRuntime> runtime;
  Mutex mutex;
  std::map<uint64_t, std::pair<Memory, size_t>> memory ABSL_GUARDED_BY(mutex);  // by address
  std::map<std::string, int> calls ABSL_GUARDED_BY(mutex);
  std::vector<std::vector<std::string>> graphs ABSL_GUARDED_BY(mutex);
  size_t used ABSL_GUARDED_BY(mutex) = 0;
  std::map<const Stream*, Capture> captures ABSL_GUARDED_BY(mutex);
  // The NULL stream. Operations of other streams do not wait for its operations, because all other
  // streams are created with kStreamNonBlocking.
  const std::unique_ptr<Stream> null_stream = *runtime->NewStream();
};

Machine* machine = nullptr;
thread_local bool has_context = false;

template <typename Object, typename Handle>
Object* From(Handle handle) {
  return reinterpret_cast<Object*>(handle);
}

Stream& StreamOf(StreamHandle handle) {
  return handle == nullptr ? *machine->null_stream : *From<Stream>(handle);
}

// The requirements of a function. A function needs a context on the calling thread if, according to
// the driver's documentation, it can return CUDA_ERROR_INVALID_CONTEXT.
enum class Needs {
  kNothing,
  kContext,
  // A context, on a thread that is not capturing. The driver's documentation calls functions with
  // this requirement potentially unsafe, but names only a few of them. The fake driver applies it
  // to all functions that allocate, free or wait, or that use the NULL stream.
  kNoCapture
};

// Returns the error that the machine prescribes for this function, or the error for an unmet
// requirement. If there is no error, counts the call and returns kSuccess.
Result Begin(const char* symbol, Needs needs = Needs::kContext) {
  MutexLock lock(machine->mutex);
  const auto failure = machine->description.failures.find(symbol);
  if (failure != machine->description.failures.end()) return failure->second;
  if (needs != Needs::kNothing && !has_context) return kInvalidContext;
  Result result = kSuccess;
  for (auto& [stream, capture] : machine->captures) {
    if (needs != Needs::kNoCapture || capture.thread != std::this_thread::get_id()) continue;
    capture.invalidated = true;
    result = kCaptureUnsupported;
  }
  if (result == kSuccess) ++machine->calls[symbol];
  return result;
}
#define TFJOB_BEGIN(...) \
  if (const Result result_ = Begin(__VA_ARGS__); result_ != kSuccess) return result_

// Submits an operation, unless the stream is in a capture that has been invalidated.
Result SubmitUnlessInvalidated(Operation operation, StreamHandle handle) {
  Stream& stream = StreamOf(handle);
  {
    MutexLock lock(machine->mutex);
    const auto found = machine->captures.find(&stream);
    if (found != machine->captures.end() && found->second.invalidated) return kCaptureInvalidated;
  }
  machine->runtime->Submit(std::move(operation), stream);
  return kSuccess;
}

Result Init(unsigned) {
  TFJOB_BEGIN("cuInit", Needs::kNothing);
  return machine->description.gpus.empty() ? kNoDevice : kSuccess;
}

Result DriverGetVersion(int* version) {
  TFJOB_BEGIN("cuDriverGetVersion", Needs::kNothing);
  *version = machine->description.driver_version;
  return kSuccess;
}

Result DeviceGetCount(int* count) {
  TFJOB_BEGIN("cuDeviceGetCount", Needs::kNothing);
  *count = static_cast<int>(machine->description.gpus.size());
  return kSuccess;
}

const FakeGpu& Gpu(Device device) {
  return machine->description.gpus[static_cast<size_t>(device)];
}

Result DeviceGet(Device* device, int ordinal) {
  TFJOB_BEGIN("cuDeviceGet", Needs::kNothing);
  *device = ordinal;
  const auto gpus = static_cast<int>(machine->description.gpus.size());
  return ordinal >= 0 && ordinal < gpus ? kSuccess : kInvalidDevice;
}

Result DeviceGetName(char* name, int length, Device device) {
  TFJOB_BEGIN("cuDeviceGetName", Needs::kNothing);
  std::strncpy(name, Gpu(device).name.c_str(), static_cast<size_t>(length));
  return kSuccess;
}

Result DeviceGetAttribute(int* value, unsigned attribute, Device device) {
  TFJOB_BEGIN("cuDeviceGetAttribute", Needs::kNothing);
  const bool major = attribute == kAttributeComputeMajor;
  *value = major ? Gpu(device).compute_major : Gpu(device).compute_minor;
  return major || attribute == kAttributeComputeMinor ? kSuccess : kInvalidValue;
}

// The first byte of a GPU's UUID is its number.
Result DeviceGetUuid(char* uuid, Device device) {
  TFJOB_BEGIN("cuDeviceGetUuid_v2", Needs::kNothing);
  std::memset(uuid, 0, kUuidBytes);
  uuid[0] = static_cast<char>(device);
  return kSuccess;
}

Result DevicePrimaryCtxRetain(Context* context, Device) {
  TFJOB_BEGIN("cuDevicePrimaryCtxRetain", Needs::kNothing);
  *context = reinterpret_cast<Context>(machine);
  return kSuccess;
}

Result DevicePrimaryCtxRelease(Device) {
  return Begin("cuDevicePrimaryCtxRelease_v2", Needs::kNothing);
}

Result CtxSetCurrent(Context context) {
  TFJOB_BEGIN("cuCtxSetCurrent", Needs::kNothing);
  has_context = context != nullptr;
  return kSuccess;
}

Result CtxSynchronize() {
  TFJOB_BEGIN("cuCtxSynchronize", Needs::kNoCapture);
  return machine->runtime->Synchronize().ok() ? kSuccess : kInvalidValue;
}

Result MemGetInfo(size_t* free, size_t* total) {
  TFJOB_BEGIN("cuMemGetInfo_v2");
  MutexLock lock(machine->mutex);
  *total = machine->description.gpus[0].memory_bytes;
  *free = *total - machine->used - machine->description.gpus[0].used_by_others;
  return kSuccess;
}

// Allocates memory without a name and with undefined content, as the driver does.
Result AllocateMemory(MemoryKind kind, size_t bytes, uint64_t* address) {
  if (bytes == 0) return kInvalidValue;
  if (kind == MemoryKind::kDevice) {
    const FakeGpu& gpu = machine->description.gpus[0];
    MutexLock lock(machine->mutex);
    if (machine->used + bytes + gpu.used_by_others > gpu.memory_bytes) return kOutOfMemory;
  }
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
  TFJOB_BEGIN("cuMemAlloc_v2", Needs::kNoCapture);
  return AllocateMemory(MemoryKind::kDevice, bytes, address);
}

Result MemFree(DeviceAddress address) {
  TFJOB_BEGIN("cuMemFree_v2", Needs::kNoCapture);
  return FreeMemory(address, MemoryKind::kDevice);
}

Result MemHostAlloc(void** pointer, size_t bytes, unsigned) {
  TFJOB_BEGIN("cuMemHostAlloc", Needs::kNoCapture);
  uint64_t address = 0;
  const Result result = AllocateMemory(MemoryKind::kPinned, bytes, &address);
  *pointer = reinterpret_cast<void*>(address);
  return result;
}

Result MemFreeHost(void* pointer) {
  TFJOB_BEGIN("cuMemFreeHost", Needs::kNoCapture);
  return FreeMemory(reinterpret_cast<uint64_t>(pointer), MemoryKind::kPinned);
}

Result Await(Stream& stream) {
  const auto event = *machine->runtime->NewEvent();
  machine->runtime->Record(*event, stream);
  return machine->runtime->Synchronize(*event).ok() ? kSuccess : kInvalidValue;
}

void NoteRead(const void* content, size_t bytes) {
  if (machine->description.reads) machine->description.reads(content, bytes);
}
void NoteWritten(const void* content, size_t bytes) {
  if (machine->description.wrote) machine->description.wrote(content, bytes);
}

// The next three functions use the NULL stream. Memsets, and copies from pageable memory, return
// before they have run ("API synchronization behavior" in the CUDA Driver API Reference).
Result MemcpyHtoD(DeviceAddress to, const void* from, size_t bytes) {
  TFJOB_BEGIN("cuMemcpyHtoD_v2", Needs::kNoCapture);
  const std::string staged(static_cast<const char*>(from), bytes);
  machine->runtime->Submit({"cuMemcpyHtoD",
                            {{reinterpret_cast<void*>(to), bytes, /*writes=*/true}},
                            [staged](std::span<void* const> storage) {
                              std::memcpy(storage[0], staged.data(), staged.size());
                              NoteWritten(storage[0], staged.size());
                            }},
                           *machine->null_stream);
  return kSuccess;
}

Result MemcpyDtoH(void* to, DeviceAddress from, size_t bytes) {
  TFJOB_BEGIN("cuMemcpyDtoH_v2", Needs::kNoCapture);
  machine->runtime->Submit({"cuMemcpyDtoH",
                            {{reinterpret_cast<void*>(from), bytes, /*writes=*/false}},
                            [to, bytes](std::span<void* const> storage) {
                              NoteRead(storage[0], bytes);
                              std::memcpy(to, storage[0], bytes);
                            }},
                           *machine->null_stream);
  return Await(*machine->null_stream);
}

Result MemsetD8(DeviceAddress to, unsigned char value, size_t bytes) {
  TFJOB_BEGIN("cuMemsetD8_v2", Needs::kNoCapture);
  machine->runtime->Submit({"cuMemsetD8",
                            {{reinterpret_cast<void*>(to), bytes, /*writes=*/true}},
                            [value, bytes](std::span<void* const> storage) {
                              std::memset(storage[0], value, bytes);
                              NoteWritten(storage[0], bytes);
                            }},
                           *machine->null_stream);
  return kSuccess;
}

Result MemcpyAsync(DeviceAddress to, DeviceAddress from, size_t bytes, StreamHandle stream) {
  TFJOB_BEGIN("cuMemcpyAsync");
  return SubmitUnlessInvalidated({"cuMemcpyAsync",
                                  {{reinterpret_cast<void*>(to), bytes, /*writes=*/true},
                                   {reinterpret_cast<void*>(from), bytes, /*writes=*/false}},
                                  [bytes](std::span<void* const> storage) {
                                    NoteRead(storage[1], bytes);
                                    std::memcpy(storage[0], storage[1], bytes);
                                    NoteWritten(storage[0], bytes);
                                  }},
                                 stream);
}

// Streams without kStreamNonBlocking, which would wait for the NULL stream, are not implemented.
Result StreamCreate(StreamHandle* handle, unsigned flags) {
  TFJOB_BEGIN("cuStreamCreate");
  if (flags != kStreamNonBlocking) return kInvalidValue;
  *handle = reinterpret_cast<StreamHandle>(machine->runtime->NewStream()->release());
  return kSuccess;
}

Result StreamDestroy(StreamHandle handle) {
  TFJOB_BEGIN("cuStreamDestroy_v2");
  delete From<Stream>(handle);
  return kSuccess;
}

Result StreamSynchronize(StreamHandle handle) {
  TFJOB_BEGIN("cuStreamSynchronize", Needs::kNoCapture);
  return Await(StreamOf(handle));
}

Result StreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  TFJOB_BEGIN("cuStreamWaitEvent");
  machine->runtime->Wait(StreamOf(stream), *From<Event>(event));
  return kSuccess;
}

Result EventCreate(EventHandle* handle, unsigned) {
  TFJOB_BEGIN("cuEventCreate");
  *handle = reinterpret_cast<EventHandle>(machine->runtime->NewEvent()->release());
  return kSuccess;
}

Result EventDestroy(EventHandle handle) {
  TFJOB_BEGIN("cuEventDestroy_v2");
  delete From<Event>(handle);
  return kSuccess;
}

Result EventRecord(EventHandle event, StreamHandle stream) {
  TFJOB_BEGIN("cuEventRecord");
  machine->runtime->Record(*From<Event>(event), StreamOf(stream));
  return kSuccess;
}

Result EventQuery(EventHandle event) {
  TFJOB_BEGIN("cuEventQuery");
  return machine->runtime->HasRun(*From<Event>(event)) ? kSuccess : kNotReady;
}

Result EventSynchronize(EventHandle event) {
  TFJOB_BEGIN("cuEventSynchronize", Needs::kNoCapture);
  return machine->runtime->Synchronize(*From<Event>(event)).ok() ? kSuccess : kInvalidValue;
}

Result StreamBeginCapture(StreamHandle stream, unsigned) {
  TFJOB_BEGIN("cuStreamBeginCapture_v2");
  if (!machine->runtime->BeginCapture(StreamOf(stream)).ok()) return kInvalidValue;
  MutexLock lock(machine->mutex);
  machine->captures[&StreamOf(stream)] = {std::this_thread::get_id()};
  return kSuccess;
}

Result StreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  TFJOB_BEGIN("cuStreamEndCapture");
  Capture capture;
  {
    MutexLock lock(machine->mutex);
    const auto found = machine->captures.find(&StreamOf(stream));
    if (found == machine->captures.end()) return kInvalidValue;
    capture = found->second;
    if (capture.thread != std::this_thread::get_id()) return kCaptureWrongThread;
    machine->captures.erase(found);
  }
  auto sequence = machine->runtime->EndCapture(StreamOf(stream));
  *graph = nullptr;
  if (!sequence.ok()) return kInvalidValue;
  if (capture.invalidated) return kCaptureInvalidated;
  *graph = reinterpret_cast<GraphHandle>(new FakeGraphObject{*std::move(sequence)});
  return kSuccess;
}

Result GraphInstantiate(GraphExecHandle* executable, GraphHandle graph, unsigned long long) {
  TFJOB_BEGIN("cuGraphInstantiateWithFlags");
  const auto& sequence = From<FakeGraphObject>(graph)->sequence;
  *executable = reinterpret_cast<GraphExecHandle>(new FakeGraphObject{sequence});
  MutexLock lock(machine->mutex);
  machine->graphs.push_back(FakeRuntime::NamesIn(*sequence));
  return kSuccess;
}

Result GraphDestroy(GraphHandle graph) {
  TFJOB_BEGIN("cuGraphDestroy", Needs::kNothing);
  delete From<FakeGraphObject>(graph);
  return kSuccess;
}

Result GraphExecDestroy(GraphExecHandle graph) {
  TFJOB_BEGIN("cuGraphExecDestroy", Needs::kNothing);
  delete From<FakeGraphObject>(graph);
  return kSuccess;
}

Result GraphLaunch(GraphExecHandle graph, StreamHandle stream) {
  TFJOB_BEGIN("cuGraphLaunch");
  machine->runtime->Replay(*From<FakeGraphObject>(graph)->sequence, StreamOf(stream));
  return kSuccess;
}

// The image is not read, because the machine describes the kernels.
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

Result KernelGetParamInfo(KernelHandle kernel, size_t index, size_t* offset, size_t* bytes) {
  TFJOB_BEGIN("cuKernelGetParamInfo", Needs::kNothing);
  if (index > 0) return kInvalidValue;
  *offset = 0;
  *bytes = From<const std::pair<const std::string, FakeKernel>>(kernel)->second.parameter_bytes;
  return kSuccess;
}

// Returns whether the number is an address in memory that the machine has allocated.
bool IsAllocated(uint64_t number) {
  MutexLock lock(machine->mutex);
  auto block = machine->memory.upper_bound(number);
  if (block == machine->memory.begin()) return false;
  --block;
  return number < block->first + block->second.second;
}

// Loads the kernel.
Result KernelGetFunction(FunctionHandle* function, KernelHandle kernel) {
  TFJOB_BEGIN("cuKernelGetFunction", Needs::kNoCapture);
  *function = reinterpret_cast<FunctionHandle>(kernel);
  return kSuccess;
}

Result LaunchKernel(FunctionHandle handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                    StreamHandle stream, void** parameters, void**) {
  TFJOB_BEGIN("cuLaunchKernel");
  const FakeLaunch launch{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {}};
  if (!FitsGpu(launch)) return kInvalidValue;
  const auto& [name, kernel] = *From<const std::pair<const std::string, FakeKernel>>(handle);
  const auto* const parameter = static_cast<const std::byte*>(parameters[0]);
  return SubmitUnlessInvalidated(OperationOfLaunch(name, kernel, launch, parameter, IsAllocated),
                                 stream);
}

}  // namespace

const DriverApi& FakeDriver(FakeMachine description) {
  delete machine;
  machine = new Machine(std::move(description));
  has_context = false;
  return FakeDriverFunctions();
}

const DriverApi& FakeDriverFunctions() {
#define TFJOB_CUDA_FAKE(name, symbol, ...) .name = name,
  static constexpr DriverApi kDriver{TFJOB_CUDA_DRIVER_FUNCTIONS(TFJOB_CUDA_FAKE)};
#undef TFJOB_CUDA_FAKE
  return kDriver;
}

bool FakeDriverCaptures(StreamHandle stream) {
  MutexLock lock(machine->mutex);
  return machine->captures.contains(&StreamOf(stream));
}

Result SubmitToFakeDriver(Operation operation, StreamHandle stream) {
  TFJOB_BEGIN(operation.name.c_str());
  return SubmitUnlessInvalidated(std::move(operation), stream);
}

std::map<std::string, int> FakeDriverCalls() {
  MutexLock lock(machine->mutex);
  return machine->calls;
}

std::vector<std::vector<std::string>> FakeDriverGraphs() {
  MutexLock lock(machine->mutex);
  return machine->graphs;
}

std::vector<TimedOperation> FakeDriverTimeline() {
  return machine->runtime->timeline();
}

}  // namespace tfjob::device::cuda
