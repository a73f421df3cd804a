// Declares the functions that this project calls in NCCL, libnccl.so.2. No program is linked with
// the library: OpenNccl loads it when it is needed. The declarations are this project's own, so
// that the code that calls them is part of every build. In builds with --config=cuda,
// nccl_api_check.cc compares them with NVIDIA's header.
//
// Source: NCCL's user guide, version 2.28. A communicator that was created with
// NcclConfig::blocking 0 never blocks the caller: a function that cannot finish at once returns
// kNcclInProgress, and the caller polls CommGetAsyncError. Until it returns another result, only
// CommGetAsyncError and CommAbort may be called for the communicator. The library owns the objects
// behind the handles. A communicator may be used by one thread at a time.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/device/cuda/driver_api.h"

namespace tfjob::collectives::nccl {

using NcclResult = int;                             // ncclResult_t
using NcclHandle = struct NcclCommunicatorHandle*;  // ncclComm_t
using NcclStream = device::cuda::StreamHandle;      // cudaStream_t
using NcclType = int;                               // ncclDataType_t
using NcclOperator = int;                           // ncclRedOp_t

inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr NcclResult kNcclCudaError = 1;
inline constexpr NcclResult kNcclSystemError = 2;
inline constexpr NcclResult kNcclInvalidArgument = 4;
inline constexpr NcclResult kNcclInvalidUsage = 5;
inline constexpr NcclResult kNcclRemoteError = 6;
inline constexpr NcclResult kNcclInProgress = 7;

inline constexpr NcclType kNcclUint8 = 1, kNcclInt32 = 2, kNcclInt64 = 4, kNcclFloat16 = 6,
                          kNcclFloat32 = 7, kNcclFloat64 = 8, kNcclBFloat16 = 9;
inline constexpr NcclOperator kNcclSum = 0, kNcclMaximum = 2, kNcclMinimum = 3, kNcclAverage = 4;

// Identifies a communicator while its ranks connect.
struct NcclUniqueId {
  std::array<char, 128> bytes{};
};

// The oldest library that this project can use. Its functions for communicators that do not block
// exist since 2.14, but CommFinalize is reliable only since 2.18.
inline constexpr int kOldestNccl = 21800;

// The beginning of ncclConfig_t, as of 2.14. Newer libraries have more fields, to which they give
// their defaults if `version` is older than the field.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;  // the version that the layout belongs to
  int blocking = 0;
};

// Lists the name, the exported symbol and the type of each function.
#define TFJOB_NCCL_FUNCTIONS(F)                                                                   \
  F(GetVersion, "ncclGetVersion", NcclResult (*)(int*))                                           \
  F(GetErrorString, "ncclGetErrorString", const char* (*)(NcclResult))                            \
  F(GetUniqueId, "ncclGetUniqueId", NcclResult (*)(NcclUniqueId*))                                \
  F(CommInitRankConfig, "ncclCommInitRankConfig",                                                 \
    NcclResult (*)(NcclHandle*, int, NcclUniqueId, int, NcclConfig*))                             \
  F(CommGetAsyncError, "ncclCommGetAsyncError", NcclResult (*)(NcclHandle, NcclResult*))          \
  F(CommFinalize, "ncclCommFinalize", NcclResult (*)(NcclHandle))                                 \
  F(CommDestroy, "ncclCommDestroy", NcclResult (*)(NcclHandle))                                   \
  F(CommAbort, "ncclCommAbort", NcclResult (*)(NcclHandle))                                       \
  F(GroupStart, "ncclGroupStart", NcclResult (*)())                                               \
  F(GroupEnd, "ncclGroupEnd", NcclResult (*)())                                                   \
  F(AllReduce, "ncclAllReduce",                                                                   \
    NcclResult (*)(const void*, void*, size_t, NcclType, NcclOperator, NcclHandle, NcclStream))   \
  F(ReduceScatter, "ncclReduceScatter",                                                           \
    NcclResult (*)(const void*, void*, size_t, NcclType, NcclOperator, NcclHandle, NcclStream))   \
  F(AllGather, "ncclAllGather",                                                                   \
    NcclResult (*)(const void*, void*, size_t, NcclType, NcclHandle, NcclStream))                 \
  F(Broadcast, "ncclBroadcast",                                                                   \
    NcclResult (*)(const void*, void*, size_t, NcclType, int, NcclHandle, NcclStream))            \
  F(Send, "ncclSend", NcclResult (*)(const void*, size_t, NcclType, int, NcclHandle, NcclStream)) \
  F(Receive, "ncclRecv", NcclResult (*)(void*, size_t, NcclType, int, NcclHandle, NcclStream))

// The library's functions. Every member is set.
struct NcclApi {
#define TFJOB_NCCL_FIELD(name, symbol, ...) \
  using name##Function = __VA_ARGS__;       \
  name##Function name = nullptr;
  TFJOB_NCCL_FUNCTIONS(TFJOB_NCCL_FIELD)
#undef TFJOB_NCCL_FIELD
};

// Opens this machine's library on the first call; later calls return the same result. Returns
// FailedPrecondition if there is no library, or if it is too old. The message names the library,
// says what to do and, for a library that is too old, names both versions. Thread-safe.
StatusOr<const NcclApi*> OpenNccl();
// Opens the given library again in every call.
StatusOr<NcclApi> OpenNccl(const std::string& library);

// Returns a version in the format of ncclGetVersion as text, such as "2.28.9".
std::string NcclVersionText(int version);

// Converts a result to a status such as "ncclAllReduce: remote process exited or there was a
// network error". The code is Unavailable for errors of the network and of other ranks, because a
// new communicator may succeed. It is Internal for all other errors. `result` must not be
// kNcclInProgress.
Status ToStatus(const NcclApi& nccl, NcclResult result, std::string_view call);

}  // namespace tfjob::collectives::nccl
