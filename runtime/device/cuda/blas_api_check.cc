// Compares blas_api.h with NVIDIA's header at compile time, in builds with --config=cuda. Defines
// nothing.
#include <cublasLt.h>

#include <cstddef>

#include "runtime/device/cuda/blas_api.h"
#include "runtime/device/cuda/called_alike.h"

namespace tfjob::device::cuda {
namespace {

#define TFJOB_CUDA_CHECK(name, symbol, ...)                                          \
  static_assert(kCalledAlike<BlasApi::name##Function, decltype(&::cublasLt##name)>); \
  static_assert(std::string_view("cublasLt" #name) == symbol);
TFJOB_CUDA_BLAS_FUNCTIONS(TFJOB_CUDA_CHECK)

static_assert(kBlasSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(kBlasInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kBlasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(kBlasFloat32 == CUDA_R_32F);
static_assert(kBlasFloat16 == CUDA_R_16F);
static_assert(kBlasBFloat16 == CUDA_R_16BF);
static_assert(kBlasComputeFloat32 == CUBLAS_COMPUTE_32F);
static_assert(kBlasComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1 && sizeof(cublasOperation_t) == 4);
static_assert(kBlasTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(kBlasTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kBlasEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(kBlasBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kBlasAuxPointer == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
static_assert(kBlasAuxLd == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
static_assert(kBlasEpilogueNone == CUBLASLT_EPILOGUE_DEFAULT);
static_assert(kBlasEpilogueRelu == CUBLASLT_EPILOGUE_RELU);
static_assert(kBlasEpilogueBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(kBlasEpilogueReluBias == CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert(kBlasEpilogueGelu == CUBLASLT_EPILOGUE_GELU_AUX);
static_assert(kBlasEpilogueGeluBias == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(kBlasEpilogueGeluGradient == CUBLASLT_EPILOGUE_DGELU);
static_assert(kBlasEpilogueBiasGradientA == CUBLASLT_EPILOGUE_BGRADA);
static_assert(kBlasEpilogueBiasGradientB == CUBLASLT_EPILOGUE_BGRADB);
static_assert(kBlasBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(kBlasBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kBlasMaxWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kBlasReductionSchemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(kBlasReduceInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(kBlasAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(kBlasAlignmentA + 1 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(kBlasAlignmentA + 2 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(kBlasAlignmentA + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

static_assert(sizeof(BlasAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(BlasHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(BlasHeuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(BlasHeuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(BlasHeuristic, waves) ==
              offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

}  // namespace
}  // namespace tfjob::device::cuda
