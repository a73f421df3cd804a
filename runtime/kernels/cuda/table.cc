#include "runtime/kernels/cuda/table.h"

#include <utility>

#include "runtime/kernels/cuda/families.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cuda {

Status CheckCount(const Operand& operand) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (operand.shape.num_elements() <= kMost) return OkStatus();
  return Unimplemented("a tensor has ", operand.shape.num_elements(),
                       " elements, more than the kernel's ", kMost);
}

Status ExpectFloat32(const KernelRequest& request) {
  for (const auto* side : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *side)
      if (operand.dtype != DType::kFloat32) return cpu::NoKernelFor(operand.dtype);
  }
  return OkStatus();
}

namespace {

// No kernel for GPUs has the half types yet, not even those that only move elements.
Status RefuseHalfTypes(const KernelRequest& request) {
  for (const auto* side : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *side)
      if (IsHalf(operand.dtype)) return cpu::NoKernelFor(operand.dtype);
  }
  return OkStatus();
}

}  // namespace

KernelTable MakeTable(const GpuAccess& gpu) {
  KernelTable::Entries all = MatMulKernels(gpu);
  all.merge(ConvolutionKernels(gpu));
  for (const auto family : {ElementwiseKernels, ReduceKernels, SoftmaxKernels, RandomKernels,
                            CastKernels, MoveKernels, LayoutKernels, SelectKernels, GatherKernels,
                            PoolingKernels, ImageTransformKernels, BatchNormKernels, UpdateKernels})
    all.merge(family(gpu.launcher));
  for (auto& [op, entry] : all) {
    entry.prepare = [inner = std::move(entry.prepare)](const KernelRequest& request) -> Prepared {
      RETURN_IF_ERROR(RefuseHalfTypes(request));
      return inner(request);
    };
  }
  return KernelTable("CUDA", std::move(all), /*host_operands=*/false);
}

std::span<const char* const> KernelNames() {
  static constexpr const char* kNames[] = {"AddQuads",       "AddWindows",
                                           "ApplyAdam",      "ApplyAdamRows",
                                           "ApplySgd",       "ApplySgdRows",
                                           "ArgMax",         "ArgMaxRows",
                                           "AvgPool",        "AvgPoolGrad",
                                           "BatchNorm",      "BatchNormGrad",
                                           "BatchNormSums",  "Cast",
                                           "CheckIds",       "ColumnMoments",
                                           "Compare",        "DenseCrossEntropy",
                                           "Depthwise",      "DepthwiseFilter",
                                           "DepthwiseInput", "Dropout",
                                           "Elementwise",    "ElementwiseWithSlots",
                                           "Fill",           "FindMaxima",
                                           "Gather",         "GatherQuads",
                                           "GatherWindows",  "GeneralUpdate",
                                           "ImageTransform", "ImageTransformGrad",
                                           "IndexRows",      "JoinGroups",
                                           "LearningRate",   "MaxPool",
                                           "MaxPoolGrad",    "MergeIds",
                                           "MergeMoments",   "Move",
                                           "NumberIds",      "RandomNormal",
                                           "RandomUniform",  "Select",
                                           "Softmax",        "SoftmaxGrad",
                                           "SortIds",        "SparseCrossEntropy",
                                           "SumColumns",     "SumGroups",
                                           "SumRows",        "SumShortRows",
                                           "Transpose",      "UpdateNumbers"};
  return kNames;
}

}  // namespace tfjob::kernels::cuda
