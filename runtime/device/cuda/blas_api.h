// Declares the functions that this project calls in NVIDIA's matrix-product library,
// libcublasLt.so.13. As with the driver (driver_api.h), the library is opened only when a GPU is
// requested, and the declarations are this project's own. In builds with --config=cuda,
// blas_api_check.cc compares them with NVIDIA's header.
//
// Source: cuBLAS Library, "Using the cuBLASLt API", CUDA 13.0. The library stores matrices column
// by column, and uses the context of the calling thread. Any number of threads may use a handle,
// but only one thread at a time may use a descriptor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/device/cuda/driver_api.h"

namespace tfjob::device::cuda {

using BlasResult = unsigned int;  // cublasStatus_t
using BlasHandle = struct BlasHandleTag*;
using BlasProductHandle = struct BlasProductHandleTag*;        // cublasLtMatmulDesc_t
using BlasLayoutHandle = struct BlasLayoutHandleTag*;          // cublasLtMatrixLayout_t
using BlasPreferenceHandle = struct BlasPreferenceHandleTag*;  // cublasLtMatmulPreference_t

inline constexpr BlasResult kBlasSuccess = 0;
inline constexpr BlasResult kBlasInvalidValue = 7;
inline constexpr BlasResult kBlasNotSupported = 15;

// Types of elements (cudaDataType) and types of computations (cublasComputeType_t).
inline constexpr unsigned kBlasFloat32 = 0;
inline constexpr unsigned kBlasFloat16 = 2;
inline constexpr unsigned kBlasBFloat16 = 14;
inline constexpr unsigned kBlasComputeFloat32 = 68;
inline constexpr unsigned kBlasComputeTf32 = 77;

// Attributes of a product. The values of the first two are of type cublasOperation_t, in which 1
// means transposed.
inline constexpr unsigned kBlasTransposeA = 3;
inline constexpr unsigned kBlasTransposeB = 4;
inline constexpr unsigned kBlasEpilogue = 7;
inline constexpr unsigned kBlasBiasPointer = 8;
// A matrix of the result's size that an epilogue reads or writes. It is stored by columns, too,
// whose distance is of type int64_t.
inline constexpr unsigned kBlasAuxPointer = 10;
inline constexpr unsigned kBlasAuxLd = 11;  // for GELU a multiple of 8
// The epilogues. The bias has one element per row of the result, and has the result's type. The
// epilogues with GELU write their value before GELU to the auxiliary matrix. The gradient of GELU
// reads this value from there, and multiplies the product by the derivative. The last two epilogues
// add no bias; they write sums to the bias's address instead: the sums of A over its k columns (one
// per row of the result), or the sums of B over its k rows (one per column of the result).
inline constexpr uint32_t kBlasEpilogueNone = 1;
inline constexpr uint32_t kBlasEpilogueRelu = 2;
inline constexpr uint32_t kBlasEpilogueBias = 4;
inline constexpr uint32_t kBlasEpilogueReluBias = 6;
inline constexpr uint32_t kBlasEpilogueGelu = 32 | 128;
inline constexpr uint32_t kBlasEpilogueGeluBias = 32 | 128 | 4;
inline constexpr uint32_t kBlasEpilogueGeluGradient = 64 | 128;
inline constexpr uint32_t kBlasEpilogueBiasGradientA = 256;
inline constexpr uint32_t kBlasEpilogueBiasGradientB = 512;

// Attributes of a matrix's layout.
inline constexpr unsigned kBlasBatchCount = 5;   // int32_t
inline constexpr unsigned kBlasBatchStride = 6;  // int64_t, in elements

// Attributes of a preference.
inline constexpr unsigned kBlasMaxWorkspace = 1;      // uint64_t
inline constexpr unsigned kBlasReductionSchemes = 3;  // uint32_t, a mask
inline constexpr unsigned kBlasAlignmentA = 5;        // uint32_t; 6, 7, 8: those of B, C and D
inline constexpr uint32_t kBlasReduceInComputeType = 2;
// The address of the workspace must be a multiple of this number.
inline constexpr size_t kBlasWorkspaceAlignment = 256;

// An algorithm for one product, opaque outside the library.
struct BlasAlgorithm {
  std::array<uint64_t, 8> data;
};
struct BlasHeuristic {
  BlasAlgorithm algorithm;
  size_t workspace_bytes = 0;
  BlasResult state = 0;
  float waves = 0;
  std::array<int, 4> reserved;
};

// Lists the name, the exported symbol and the type of each function.
#define TFJOB_CUDA_BLAS_FUNCTIONS(F)                                                              \
  F(GetVersion, "cublasLtGetVersion", size_t (*)())                                               \
  F(GetStatusName, "cublasLtGetStatusName", const char* (*)(BlasResult))                          \
  F(Create, "cublasLtCreate", BlasResult (*)(BlasHandle*))                                        \
  F(Destroy, "cublasLtDestroy", BlasResult (*)(BlasHandle))                                       \
  F(MatmulDescCreate, "cublasLtMatmulDescCreate",                                                 \
    BlasResult (*)(BlasProductHandle*, unsigned, unsigned))                                       \
  F(MatmulDescDestroy, "cublasLtMatmulDescDestroy", BlasResult (*)(BlasProductHandle))            \
  F(MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute",                                     \
    BlasResult (*)(BlasProductHandle, unsigned, const void*, size_t))                             \
  F(MatrixLayoutCreate, "cublasLtMatrixLayoutCreate",                                             \
    BlasResult (*)(BlasLayoutHandle*, unsigned, uint64_t, uint64_t, int64_t))                     \
  F(MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", BlasResult (*)(BlasLayoutHandle))         \
  F(MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute",                                 \
    BlasResult (*)(BlasLayoutHandle, unsigned, const void*, size_t))                              \
  F(MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate",                                     \
    BlasResult (*)(BlasPreferenceHandle*))                                                        \
  F(MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy",                                   \
    BlasResult (*)(BlasPreferenceHandle))                                                         \
  F(MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute",                         \
    BlasResult (*)(BlasPreferenceHandle, unsigned, const void*, size_t))                          \
  F(MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic",                                     \
    BlasResult (*)(BlasHandle, BlasProductHandle, BlasLayoutHandle, BlasLayoutHandle,             \
                   BlasLayoutHandle, BlasLayoutHandle, BlasPreferenceHandle, int, BlasHeuristic*, \
                   int*))                                                                         \
  F(Matmul, "cublasLtMatmul",                                                                     \
    BlasResult (*)(BlasHandle, BlasProductHandle, const void*, const void*, BlasLayoutHandle,     \
                   const void*, BlasLayoutHandle, const void*, const void*, BlasLayoutHandle,     \
                   void*, BlasLayoutHandle, const BlasAlgorithm*, void*, size_t, StreamHandle))

// The library's functions. Every member is set.
struct BlasApi {
#define TFJOB_CUDA_FIELD(name, symbol, ...) \
  using name##Function = __VA_ARGS__;       \
  name##Function name = nullptr;
  TFJOB_CUDA_BLAS_FUNCTIONS(TFJOB_CUDA_FIELD)
#undef TFJOB_CUDA_FIELD
};

// Opens the library on the first call; later calls return the same result. Returns
// FailedPrecondition if this machine does not have the library in this major version. The message
// says what to do. Thread-safe.
StatusOr<const BlasApi*> OpenBlas();
// Opens the given library. Later calls open it again. If it does not exist, but one of the `others`
// does, the error names that library's version.
StatusOr<BlasApi> OpenBlas(const std::string& library, std::span<const char* const> others = {});

// Converts a result of the library to a status such as "cublasLtMatmul:
// CUBLAS_STATUS_INVALID_VALUE".
Status ToStatus(const BlasApi& blas, BlasResult result, std::string_view call);

}  // namespace tfjob::device::cuda
