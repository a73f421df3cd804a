// Lists matrix products for comparisons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/checks/comparison.h"

namespace tfjob::kernels::cuda {

// The tolerance of products, which the library and the CPU add in different orders.
inline constexpr double kProductTolerance = 5e-5;

// Returns a product of m x k and k x n matrices, computed by MatMul or another op of this family.
Comparison MatMulCase(const std::string& op, int64_t m, int64_t n, int64_t k,
                      Attributes attributes);
// Returns a product of x [2,1,m,k] and y [3,k,n]. Each bit of `bits` selects a pair of axes to be
// exchanged.
Comparison BatchMatMulCase(int64_t m, int64_t n, int64_t k, int bits);
// Returns the attributes of all four transpositions.
std::vector<Attributes> Transpositions();
// Returns FusedMatMul with each activation, with and without a bias.
std::vector<Comparison> FusedMatMulCases(int64_t m, int64_t n, int64_t k);
// Returns MatMulGelu and MatMulGeluGrad.
std::vector<Comparison> GeluCases(int64_t m, int64_t n, int64_t k);
// Returns MatMulBiasGrad with all combinations of transposed factors.
std::vector<Comparison> BiasGradCases(int64_t m, int64_t n, int64_t k);

}  // namespace tfjob::kernels::cuda
