// Compares nccl_api.h with NVIDIA's header at compile time, in builds with --config=cuda. Defines
// nothing.
#include <nccl.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "runtime/collectives/nccl/nccl_api.h"
#include "runtime/device/cuda/called_alike.h"

namespace tfjob::collectives::nccl {
namespace {

// ncclUniqueId and its twin are structures of 128 bytes, which are passed by value.
template <typename T>
inline constexpr bool kIsId = std::is_same_v<T, NcclUniqueId> || std::is_same_v<T, ncclUniqueId>;
template <typename A, typename B>
inline constexpr bool kArgumentsAlike =
    (kIsId<A> && kIsId<B> && sizeof(A) == sizeof(B)) || device::cuda::kPassedAlike<A, B>;

template <typename Ours, typename Theirs>
inline constexpr bool kFunctionsAlike = false;
template <typename R, typename... A, typename S, typename... B>
inline constexpr bool kFunctionsAlike<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) != sizeof...(B)) {
    return false;
  } else {
    return device::cuda::kPassedAlike<R, S> && (... && kArgumentsAlike<A, B>);
  }
}();

#define TFJOB_NCCL_CHECK(name, symbol, theirs)                                  \
  static_assert(kFunctionsAlike<NcclApi::name##Function, decltype(&::theirs)>); \
  static_assert(std::string_view(symbol) == #theirs);
#define TFJOB_NCCL_SYMBOL(name, symbol, ...) constexpr std::string_view kSymbolOf##name = symbol;
TFJOB_NCCL_FUNCTIONS(TFJOB_NCCL_SYMBOL)
TFJOB_NCCL_CHECK(GetVersion, kSymbolOfGetVersion, ncclGetVersion)
TFJOB_NCCL_CHECK(GetErrorString, kSymbolOfGetErrorString, ncclGetErrorString)
TFJOB_NCCL_CHECK(GetUniqueId, kSymbolOfGetUniqueId, ncclGetUniqueId)
TFJOB_NCCL_CHECK(CommInitRankConfig, kSymbolOfCommInitRankConfig, ncclCommInitRankConfig)
TFJOB_NCCL_CHECK(CommGetAsyncError, kSymbolOfCommGetAsyncError, ncclCommGetAsyncError)
TFJOB_NCCL_CHECK(CommFinalize, kSymbolOfCommFinalize, ncclCommFinalize)
TFJOB_NCCL_CHECK(CommDestroy, kSymbolOfCommDestroy, ncclCommDestroy)
TFJOB_NCCL_CHECK(CommAbort, kSymbolOfCommAbort, ncclCommAbort)
TFJOB_NCCL_CHECK(GroupStart, kSymbolOfGroupStart, ncclGroupStart)
TFJOB_NCCL_CHECK(GroupEnd, kSymbolOfGroupEnd, ncclGroupEnd)
TFJOB_NCCL_CHECK(AllReduce, kSymbolOfAllReduce, ncclAllReduce)
TFJOB_NCCL_CHECK(ReduceScatter, kSymbolOfReduceScatter, ncclReduceScatter)
TFJOB_NCCL_CHECK(AllGather, kSymbolOfAllGather, ncclAllGather)
TFJOB_NCCL_CHECK(Broadcast, kSymbolOfBroadcast, ncclBroadcast)
TFJOB_NCCL_CHECK(Send, kSymbolOfSend, ncclSend)
TFJOB_NCCL_CHECK(Receive, kSymbolOfReceive, ncclRecv)

static_assert(kNcclSuccess == ncclSuccess && kNcclCudaError == ncclUnhandledCudaError);
static_assert(kNcclSystemError == ncclSystemError && kNcclInvalidArgument == ncclInvalidArgument);
static_assert(kNcclInvalidUsage == ncclInvalidUsage && kNcclRemoteError == ncclRemoteError);
static_assert(kNcclInProgress == ncclInProgress);
static_assert(kNcclUint8 == ncclUint8 && kNcclInt32 == ncclInt32 && kNcclInt64 == ncclInt64);
static_assert(kNcclFloat16 == ncclFloat16 && kNcclFloat32 == ncclFloat32);
static_assert(kNcclFloat64 == ncclFloat64 && kNcclBFloat16 == ncclBfloat16);
static_assert(kNcclSum == ncclSum && kNcclMaximum == ncclMax && kNcclMinimum == ncclMin);
static_assert(kNcclAverage == ncclAvg);
static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
constexpr ncclConfig_t kTheirDefaults = NCCL_CONFIG_INITIALIZER;
static_assert(NcclConfig().magic == kTheirDefaults.magic);

}  // namespace
}  // namespace tfjob::collectives::nccl
