// Declares the functions that this project calls in NVIDIA's driver, libcuda.so.1. The library is
// installed with the driver, so no program is linked with it: OpenDriver loads it when a GPU is
// requested. The declarations are this project's own, so that the code that calls them is part of
// every build. In builds with --config=cuda, driver_api_check.cc compares them with NVIDIA's
// header.
//
// Source: CUDA Driver API Reference, CUDA 13.0. The driver owns the objects behind the handles. All
// functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::device::cuda {

using Result = unsigned int;     // CUresult
using DeviceAddress = uint64_t;  // CUdeviceptr
using Device = int;              // CUdevice
using Context = struct ContextHandle*;
using StreamHandle = struct StreamHandleTag*;
using EventHandle = struct EventHandleTag*;
using GraphHandle = struct GraphHandleTag*;
using GraphExecHandle = struct GraphExecHandleTag*;
using LibraryHandle = struct LibraryHandleTag*;
using KernelHandle = struct KernelHandleTag*;      // CUkernel: in a library
using FunctionHandle = struct FunctionHandleTag*;  // CUfunction: loaded in a context

inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1;  // waiting threads sleep
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr unsigned kCaptureThreadLocal = 1;
inline constexpr unsigned kAttributeComputeMajor = 75;
inline constexpr unsigned kAttributeComputeMinor = 76;
inline constexpr size_t kUuidBytes = 16;

// Returns whether this result means that an operation failed while it ran. The context is then
// unusable, and every later call returns the same result.
constexpr bool IsFaultOfOperation(Result result) {
  switch (result) {
    case 214:  // ECC_UNCORRECTABLE
    case 220:  // NVLINK_UNCORRECTABLE
    case 226:  // CONTAINED
    case 700:  // ILLEGAL_ADDRESS
    case 702:  // LAUNCH_TIMEOUT
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
    case 721:  // TENSOR_MEMORY_LEAK
      return true;
    default:
      return false;
  }
}

// Lists the name, the exported symbol and the type of each function.
#define TFJOB_CUDA_DRIVER_FUNCTIONS(F)                                                             \
  F(GetErrorName, "cuGetErrorName", Result (*)(Result, const char**))                              \
  F(GetErrorString, "cuGetErrorString", Result (*)(Result, const char**))                          \
  F(Init, "cuInit", Result (*)(unsigned))                                                          \
  F(DriverGetVersion, "cuDriverGetVersion", Result (*)(int*))                                      \
  F(DeviceGetCount, "cuDeviceGetCount", Result (*)(int*))                                          \
  F(DeviceGet, "cuDeviceGet", Result (*)(Device*, int))                                            \
  F(DeviceGetName, "cuDeviceGetName", Result (*)(char*, int, Device))                              \
  F(DeviceGetAttribute, "cuDeviceGetAttribute", Result (*)(int*, unsigned, Device))                \
  F(DeviceGetUuid, "cuDeviceGetUuid_v2", Result (*)(char*, Device))                                \
  F(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", Result (*)(Context*, Device))              \
  F(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", Result (*)(Device))                   \
  F(CtxSetCurrent, "cuCtxSetCurrent", Result (*)(Context))                                         \
  F(CtxSynchronize, "cuCtxSynchronize", Result (*)())                                              \
  F(MemGetInfo, "cuMemGetInfo_v2", Result (*)(size_t*, size_t*))                                   \
  F(MemAlloc, "cuMemAlloc_v2", Result (*)(DeviceAddress*, size_t))                                 \
  F(MemFree, "cuMemFree_v2", Result (*)(DeviceAddress))                                            \
  F(MemHostAlloc, "cuMemHostAlloc", Result (*)(void**, size_t, unsigned))                          \
  F(MemFreeHost, "cuMemFreeHost", Result (*)(void*))                                               \
  F(MemcpyHtoD, "cuMemcpyHtoD_v2", Result (*)(DeviceAddress, const void*, size_t))                 \
  F(MemcpyDtoH, "cuMemcpyDtoH_v2", Result (*)(void*, DeviceAddress, size_t))                       \
  F(MemcpyAsync, "cuMemcpyAsync", Result (*)(DeviceAddress, DeviceAddress, size_t, StreamHandle))  \
  F(MemsetD8, "cuMemsetD8_v2", Result (*)(DeviceAddress, unsigned char, size_t))                   \
  F(StreamCreate, "cuStreamCreate", Result (*)(StreamHandle*, unsigned))                           \
  F(StreamDestroy, "cuStreamDestroy_v2", Result (*)(StreamHandle))                                 \
  F(StreamSynchronize, "cuStreamSynchronize", Result (*)(StreamHandle))                            \
  F(StreamWaitEvent, "cuStreamWaitEvent", Result (*)(StreamHandle, EventHandle, unsigned))         \
  F(EventCreate, "cuEventCreate", Result (*)(EventHandle*, unsigned))                              \
  F(EventDestroy, "cuEventDestroy_v2", Result (*)(EventHandle))                                    \
  F(EventRecord, "cuEventRecord", Result (*)(EventHandle, StreamHandle))                           \
  F(EventQuery, "cuEventQuery", Result (*)(EventHandle))                                           \
  F(EventSynchronize, "cuEventSynchronize", Result (*)(EventHandle))                               \
  F(StreamBeginCapture, "cuStreamBeginCapture_v2", Result (*)(StreamHandle, unsigned))             \
  F(StreamEndCapture, "cuStreamEndCapture", Result (*)(StreamHandle, GraphHandle*))                \
  F(GraphInstantiate, "cuGraphInstantiateWithFlags",                                               \
    Result (*)(GraphExecHandle*, GraphHandle, unsigned long long))                                 \
  F(GraphDestroy, "cuGraphDestroy", Result (*)(GraphHandle))                                       \
  F(GraphExecDestroy, "cuGraphExecDestroy", Result (*)(GraphExecHandle))                           \
  F(GraphLaunch, "cuGraphLaunch", Result (*)(GraphExecHandle, StreamHandle))                       \
  F(LibraryLoadData, "cuLibraryLoadData",                                                          \
    Result (*)(LibraryHandle*, const void*, unsigned*, void**, unsigned, unsigned*, void**,        \
               unsigned))                                                                          \
  F(LibraryUnload, "cuLibraryUnload", Result (*)(LibraryHandle))                                   \
  F(LibraryGetKernel, "cuLibraryGetKernel", Result (*)(KernelHandle*, LibraryHandle, const char*)) \
  F(KernelGetParamInfo, "cuKernelGetParamInfo",                                                    \
    Result (*)(KernelHandle, size_t, size_t*, size_t*))                                            \
  F(KernelGetFunction, "cuKernelGetFunction", Result (*)(FunctionHandle*, KernelHandle))           \
  F(LaunchKernel, "cuLaunchKernel",                                                                \
    Result (*)(FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,         \
               unsigned, StreamHandle, void**, void**))

// The driver's functions. Every member is set.
struct DriverApi {
#define TFJOB_CUDA_FIELD(name, symbol, ...) \
  using name##Function = __VA_ARGS__;       \
  name##Function name = nullptr;
  TFJOB_CUDA_DRIVER_FUNCTIONS(TFJOB_CUDA_FIELD)
#undef TFJOB_CUDA_FIELD
};

// The oldest driver that can run the kernels' machine code, as a version in the format of
// cuDriverGetVersion.
inline constexpr int kOldestCuda = 13000;
// The oldest GPUs that the kernels are compiled for have compute capability 8.0 (Ampere).
inline constexpr int kOldestCompute = 80;

// Opens and initialises this machine's driver on the first call; later calls return the same
// result. Returns FailedPrecondition if there is no driver, if the driver is too old, or if it
// finds no GPU. The message says what to do; for a driver that is too old, it names both versions.
// Thread-safe.
StatusOr<const DriverApi*> OpenDriver();

// Opens the given library. Later calls open it again. `visible` is the value of
// CUDA_VISIBLE_DEVICES, or null if it is not set; if the driver finds no GPU, the message contains
// this value.
StatusOr<DriverApi> OpenDriver(const std::string& library, const std::string* visible);

// Returns FailedPrecondition if this machine has no driver. Does not initialise the driver, because
// that takes long: the driver opens every GPU.
Status FindDriver();
Status FindDriver(const std::string& library);

// Initialises a driver. Like OpenDriver, checks that its version is recent enough and that it finds
// a GPU.
Status CheckDriver(const DriverApi& driver, const std::string* visible);

// Converts a result of the driver to a status such as "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of
// memory)". The code is ResourceExhausted for kOutOfMemory, and Internal for every other error.
Status ToStatus(const DriverApi& driver, Result result, std::string_view call);

}  // namespace tfjob::device::cuda
