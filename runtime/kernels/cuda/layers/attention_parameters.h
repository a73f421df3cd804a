// Declares the parameter of the kernels of attention (attention.cu). As in parameters.h, the struct
// contains only pointers and numbers of fixed sizes; all pointers are to device memory.
#pragma once

#include <cstdint>

#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {

// A block computes kAttentionTile queries or keys of one head. Each of its warps computes 16 of
// them.
inline constexpr int kAttentionThreads = 128;
inline constexpr int kAttentionTile = 64;
// The largest size of a head's queries and values. Heads of up to kAttentionShort elements have
// faster kernels.
inline constexpr int kAttentionShort = 64;
inline constexpr int kAttentionDepth = 128;

// A tensor [batch,positions,heads,size]. `stride` is that of its rows, which have `size` elements.
struct HeadTensor {
  void* data;
  int64_t stride;
};

struct AttentionParameter {
  HeadTensor q, k, v, y, dy, dq, dk, dv;
  // The largest score of each query, and the sum of exp(score - largest): two planes of
  // [batch·heads] rows, which start `statistics_stride` elements apart.
  float* statistics;
  int64_t statistics_stride;
  float* sums;          // Σ dy·y of each query: [batch·heads, queries]
  const uint8_t* mask;  // null: no mask
  int64_t mask_batch, mask_head, mask_query, mask_key;  // strides; 0 where the mask is repeated
  RandomWords words;
  uint32_t threshold;  // the smallest word that keeps a weight
  float keep;          // by which a kept weight is multiplied
  int32_t drops;       // 1: some weights are dropped
  int32_t clears;      // 1: the weights of masked keys are 0, even if all keys are masked
  float scale;         // by which the scores are multiplied
  float masked;        // the score of a masked key
  int32_t batch, heads, queries, keys;
  int32_t depth, value_depth;  // the elements of a head's query and value
};

}  // namespace tfjob::kernels::cuda
