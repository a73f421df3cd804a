#include "runtime/kernels/cuda/checks/cases.h"

namespace tfjob::kernels::cuda {

std::span<const CaseFamily> CaseFamilies() {
  static const auto* const kFamilies = new std::vector<CaseFamily>{
      {"elementwise", {UnaryCases, BinaryCases, BroadcastCases, ProgramCases, MixedProgramCases}},
      {"layout",
       {CopyCases, TransposeCases, ConcatAndSliceCases, PadCases, FillCases, AnyBroadcastCases}},
      {"select", {CompareCases, SelectCases, ArgMaxCases}},
      {"reduce", {SumCases, ReductionCases}},
      {"softmax", {SoftmaxCases, SparseCrossEntropyCases, DenseCrossEntropyCases}},
      {"attention", {AttentionCases}},
      {"normalization", {LayerNormalizationCases}},
      {"random", {RandomNumberCases}},
      {"cast", {CastCases}},
      {"numbers", {CheckNumericsCases}},
      {"tables", {GatherCases, SumOfEqualIdsCases}},
      {"products", {MatMulCases, BatchMatMulCases}},
      {"convolution", {ConvolutionCases, DepthwiseCases}},
      {"images", {PoolingCases, BatchNormCases, ImageTransformCases}},
      {"optimizers", {OptimizerCases, OptimizerGroupCases, OptimizerRowsCases}}};
  return *kFamilies;
}

}  // namespace tfjob::kernels::cuda
