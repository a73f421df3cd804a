// Declares the parameter of the kernels of layer normalization (layer_normalization.cu). As in
// parameters.h, the struct contains only pointers and numbers of fixed sizes; all pointers are to
// device memory.
#pragma once

#include <cstdint>

#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {

inline constexpr int kNormalizationWarps = 4;  // each computes a row
// LayerNormalizationSums adds up kNormalizationRows rows per block. The threads of a block take
// turns with the columns.
inline constexpr int kNormalizationColumns = 256;
inline constexpr int kNormalizationRows = 32;

// A matrix, or a single row. `stride` is that of its rows.
struct NormalizationTensor {
  void* data;
  int64_t stride;
  FloatType type;
};

struct LayerNormalizationParameter {
  NormalizationTensor x, y, dx;     // y: or its gradient
  NormalizationTensor added;        // to dx; null: nothing is added
  NormalizationTensor gamma, beta;  // rows of float32
  // The mean of each row, and the inverse of its deviation: two rows, which start
  // `statistics_stride` elements apart.
  float* statistics;
  int64_t statistics_stride;
  float *gamma_sums, *beta_sums;  // one row of `cols` elements per block of rows
  int64_t rows;
  int32_t cols;
  float epsilon;
};

}  // namespace tfjob::kernels::cuda
