// Lists comparisons for all kernels, by family. The shapes are small, and depend on a seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/cuda/checks/comparison.h"

namespace tfjob::kernels::cuda {

std::vector<Comparison> UnaryCases(uint64_t seed);
std::vector<Comparison> BinaryCases(uint64_t seed);
std::vector<Comparison> BroadcastCases(uint64_t seed);
std::vector<Comparison> ProgramCases(uint64_t seed);       // FusedElementwise
std::vector<Comparison> MixedProgramCases(uint64_t seed);  // with several types, and Dropout

std::vector<Comparison> SumCases(uint64_t seed);        // over the first and the last axes
std::vector<Comparison> ReductionCases(uint64_t seed);  // over any axes
std::vector<Comparison> SoftmaxCases(uint64_t seed);
std::vector<Comparison> SparseCrossEntropyCases(uint64_t seed);
std::vector<Comparison> DenseCrossEntropyCases(uint64_t seed);

std::vector<Comparison> AttentionCases(uint64_t seed);           // and its gradients
std::vector<Comparison> LayerNormalizationCases(uint64_t seed);  // likewise

std::vector<Comparison> CopyCases(uint64_t seed);
std::vector<Comparison> TransposeCases(uint64_t seed);
std::vector<Comparison> ConcatAndSliceCases(uint64_t seed);
std::vector<Comparison> PadCases(uint64_t seed);
std::vector<Comparison> FillCases(uint64_t seed);
std::vector<Comparison> AnyBroadcastCases(uint64_t seed);
std::vector<Comparison> CompareCases(uint64_t seed);  // Equal, Greater and others
std::vector<Comparison> SelectCases(uint64_t seed);
std::vector<Comparison> ArgMaxCases(uint64_t seed);

std::vector<Comparison> RandomNumberCases(uint64_t seed);
std::vector<Comparison> CastCases(uint64_t seed);
std::vector<Comparison> CheckNumericsCases(uint64_t seed);  // the CPU refuses some of the inputs
std::vector<Comparison> GatherCases(uint64_t seed);
std::vector<Comparison> SumOfEqualIdsCases(uint64_t seed);

std::vector<Comparison> MatMulCases(uint64_t seed);
std::vector<Comparison> BatchMatMulCases(uint64_t seed);

std::vector<Comparison> ConvolutionCases(uint64_t seed);
std::vector<Comparison> DepthwiseCases(uint64_t seed);
std::vector<Comparison> PoolingCases(uint64_t seed);
std::vector<Comparison> BatchNormCases(uint64_t seed);
std::vector<Comparison> ImageTransformCases(uint64_t seed);

std::vector<Comparison> OptimizerCases(uint64_t seed);       // ApplyOptimizer
std::vector<Comparison> OptimizerGroupCases(uint64_t seed);  // ApplyOptimizers
std::vector<Comparison> OptimizerRowsCases(uint64_t seed);   // ApplyOptimizerRows

// Comparisons of one kind, which a self-test reports together.
struct CaseFamily {
  const char* name;
  std::vector<std::vector<Comparison> (*)(uint64_t seed)> cases;
};
// Returns the families. Together, they contain every op of MakeTable (table.h).
std::span<const CaseFamily> CaseFamilies();

}  // namespace tfjob::kernels::cuda
