#include "runtime/kernels/cuda/table.h"

#include <utility>

#include "runtime/kernels/cpu/half.h"
#include "runtime/kernels/cuda/families.h"

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

StatusOr<FloatType> FloatTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return FloatType::kFloat32;
    case DType::kBFloat16:
      return FloatType::kBFloat16;
    case DType::kFloat16:
      return FloatType::kFloat16;
    default:
      return cpu::NoKernelFor(dtype);
  }
}

StatusOr<FloatType> FloatTypeOf(std::initializer_list<const Operand*> operands) {
  const DType first = (*operands.begin())->dtype;
  for (const Operand* operand : operands)
    if (operand->dtype != first) return cpu::NoKernelFor(operand->dtype);
  return FloatTypeOf(first);
}

StatusOr<FloatType> FloatTypeOf(const KernelRequest& request) {
  const Operand& out = request.outputs[0];
  for (const Operand& input : request.inputs) RETURN_IF_ERROR(FloatTypeOf({&out, &input}).status());
  for (const Operand& more : request.outputs) RETURN_IF_ERROR(FloatTypeOf({&out, &more}).status());
  return FloatTypeOf(out.dtype);
}

KernelTable MakeTable(const GpuAccess& gpu) {
  KernelTable::Entries all = MatMulKernels(gpu);
  all.merge(MatMulBiasGradKernels(gpu));
  all.merge(MatMulGeluKernels(gpu));
  all.merge(ConvolutionKernels(gpu));
  for (const auto family :
       {ElementwiseKernels, ReduceKernels, SoftmaxKernels, AttentionKernels, NormalizationKernels,
        RandomKernels, CastKernels, MoveKernels, LayoutKernels, SelectKernels, GatherKernels,
        PoolingKernels, ImageTransformKernels, BatchNormKernels, NumberKernels})
    all.merge(family(gpu.launcher));
  all = cpu::WithHalfTypes(std::move(all));
  all.merge(UpdateKernels(gpu.launcher));  // variables and their gradients never have half types
  return KernelTable("CUDA", std::move(all), /*host_operands=*/false);
}

std::span<const char* const> KernelNames() {
  // clang-format off: it would write one name per line
  static constexpr const char* kNames[] = {
      "AddQuads", "AddToDoubles", "AddWindows", "ApplyAdam", "ApplyAdamRows", "ApplySgd",
      "ApplySgdRows", "ArgMax", "ArgMaxRows", "AttentionBFloat16_128", "AttentionBFloat16_64", "AttentionFloat16_128",
      "AttentionFloat16_64", "AttentionKeysBFloat16_128", "AttentionKeysBFloat16_64",
      "AttentionKeysFloat16_128", "AttentionKeysFloat16_64", "AttentionQueriesBFloat16_128",
      "AttentionQueriesBFloat16_64", "AttentionQueriesFloat16_128", "AttentionQueriesFloat16_64",
      "AvgPool", "AvgPoolGrad", "BatchNorm", "BatchNormGrad", "BatchNormSums", "Cast", "CheckIds",
      "ColumnMoments", "Compare", "DenseCrossEntropy", "Depthwise", "DepthwiseFilter",
      "DepthwiseInput", "Dropout", "Elementwise", "ElementwiseWithDropout", "ElementwiseWithSlots",
      "Fill", "FindMaxima",
      "FindNotFinite", "Gather", "GatherQuads", "GatherWindows", "GeneralUpdate", "ImageTransform",
      "ImageTransformGrad", "IndexRows", "JoinGroups", "LayerNormalization",
      "LayerNormalizationGrad", "LayerNormalizationSums", "LearningRate", "MaxPool", "MaxPoolGrad",
      "MergeIds", "MergeMoments", "Move", "NumberIds", "RandomNormal", "RandomUniform",
      "RefuseNotFinite", "Select", "Softmax", "SoftmaxGrad", "SortIds", "SparseCrossEntropy",
      "SumColumns", "SumGroups", "SumRows", "SumShortRows", "Transpose", "UpdateNumbers"};
  // clang-format on
  return kNames;
}

}  // namespace tfjob::kernels::cuda
