// Compares driver_api.h with NVIDIA's header at compile time, in builds with --config=cuda. Defines
// nothing.
#include <cuda.h>

#include <initializer_list>
#include <string_view>

#include "runtime/device/cuda/called_alike.h"
#include "runtime/device/cuda/driver_api.h"

namespace tfjob::device::cuda {
namespace {

#define TFJOB_CUDA_CHECK(name, ...)                                              \
  static_assert(kCalledAlike<DriverApi::name##Function, decltype(&::cu##name)>); \
  TFJOB_CUDA_CHECK_SYMBOL(cu##name, name)

// cuda.h maps the name of a function to the symbol of its current version, such as cuMemAlloc_v2.
#define TFJOB_TEXT(x) #x
#define TFJOB_CUDA_CHECK_SYMBOL(mapped, name) \
  static_assert(std::string_view(TFJOB_TEXT(mapped)) == kSymbolOf##name);

#define TFJOB_CUDA_SYMBOL(name, symbol, ...) constexpr std::string_view kSymbolOf##name = symbol;
TFJOB_CUDA_DRIVER_FUNCTIONS(TFJOB_CUDA_SYMBOL)
TFJOB_CUDA_DRIVER_FUNCTIONS(TFJOB_CUDA_CHECK)

static_assert(sizeof(DeviceAddress) == sizeof(CUdeviceptr));
static_assert(kSuccess == CUDA_SUCCESS && kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kNoDevice == CUDA_ERROR_NO_DEVICE && kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(kNotReady == CUDA_ERROR_NOT_READY);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventBlockingSync == CU_EVENT_BLOCKING_SYNC);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(kAttributeComputeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kAttributeComputeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

constexpr bool AreFaults(std::initializer_list<CUresult> results) {
  for (const CUresult result : results)
    if (!IsFaultOfOperation(result)) return false;
  return true;
}
static_assert(
    AreFaults({CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_CONTAINED,
               CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_ASSERT,
               CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION,
               CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_INVALID_ADDRESS_SPACE,
               CUDA_ERROR_INVALID_PC, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_TENSOR_MEMORY_LEAK}));

}  // namespace
}  // namespace tfjob::device::cuda
