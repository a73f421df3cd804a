// Contains what the kernels of attention share: how a block copies the rows of a head to shared
// memory, and how its warps multiply them. Only kernels include this header.
#pragma once

#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/layers/attention_parameters.h"
#include "runtime/kernels/cuda/layers/matrix_units.h"
#include "runtime/kernels/cuda/random_words.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr int kHeadTile = kAttentionTile;
constexpr int kStep = 16;                   // the keys or queries that a warp multiplies at a time
constexpr int kMaskStride = kHeadTile + 8;  // so that lanes access different banks
constexpr int kChunks = kHeadTile / kStep;

// The head, and the first query or key, that a block computes.
struct HeadTile {
  int batch, head, first;

  TFJOB_DEVICE HeadTile(const AttentionParameter& p, int count) {
    const int tiles = (count + kHeadTile - 1) / kHeadTile;
    const int heads = static_cast<int>(blockIdx.x) / tiles;
    first = static_cast<int>(blockIdx.x) % tiles * kHeadTile;
    batch = heads / p.heads;
    head = heads % p.heads;
  }
};

// The rows of a head, from a position on.
template <typename Half>
struct HeadRows {
  Half* data;
  int64_t stride;  // between positions
  int count;       // up to kHeadTile
  int size;        // the elements of a row
  bool quads;      // whether four elements can be accessed at once

  TFJOB_DEVICE HeadRows(const AttentionParameter& p, const HeadTensor& tensor, const HeadTile& tile,
                        int positions, int from, int elements) {
    stride = p.heads * tensor.stride;
    data = static_cast<Half*>(tensor.data) +
           (static_cast<int64_t>(tile.batch) * positions + from) * stride +
           tile.head * tensor.stride;
    count = positions - from < kHeadTile ? positions - from : kHeadTile;
    size = elements;
    quads = tensor.stride % 4 == 0 && reinterpret_cast<uintptr_t>(tensor.data) % 8 == 0;
  }
};

// Copies the rows to shared memory. Everything beyond them becomes 0.
template <int kDepth, typename Half>
TFJOB_DEVICE void LoadRows(const HeadRows<Half>& rows, Half* matrix) {
  // More loads in flight would need more registers than a thread has.
  TFJOB_UNROLLED_BY(kDepth > kAttentionShort ? 2 : 4)
  for (int i = threadIdx.x; i < kHeadTile * kDepth / 4; i += kAttentionThreads) {
    const int row = i / (kDepth / 4), col = i % (kDepth / 4) * 4;
    const Half* const from = rows.data + row * rows.stride + col;
    float4 x{0.0f, 0.0f, 0.0f, 0.0f};
    if (row < rows.count) {
      if (rows.quads && col + 4 <= rows.size) {
        x = Load(from);
      } else {
        if (col < rows.size) x.x = static_cast<float>(from[0]);
        if (col + 1 < rows.size) x.y = static_cast<float>(from[1]);
        if (col + 2 < rows.size) x.z = static_cast<float>(from[2]);
        if (col + 3 < rows.size) x.w = static_cast<float>(from[3]);
      }
    }
    Store(matrix + row * (kDepth + kPadding) + col, x);
  }
}

// Copies the rows from shared memory.
template <int kDepth, typename Half>
TFJOB_DEVICE void StoreRows(const Half* matrix, const HeadRows<Half>& rows) {
  for (int i = threadIdx.x; i < kHeadTile * kDepth / 4; i += kAttentionThreads) {
    const int row = i / (kDepth / 4), col = i % (kDepth / 4) * 4;
    if (row >= rows.count) return;
    const float4 x = Load(matrix + row * (kDepth + kPadding) + col);
    Half* const to = rows.data + row * rows.stride + col;
    if (rows.quads && col + 4 <= rows.size) {
      Store(to, x);
    } else {
      if (col < rows.size) to[0] = Half(x.x);
      if (col + 1 < rows.size) to[1] = Half(x.y);
      if (col + 2 < rows.size) to[2] = Half(x.z);
      if (col + 3 < rows.size) to[3] = Half(x.w);
    }
  }
}

// Copies the mask of a tile of queries and keys to shared memory.
TFJOB_DEVICE void LoadMask(const AttentionParameter& p, const HeadTile& tile, int query, int key,
                           uint8_t* mask) {
  if (p.mask == nullptr) return;
  const uint8_t* const from = p.mask + tile.batch * p.mask_batch + tile.head * p.mask_head;
  for (int i = threadIdx.x; i < kHeadTile * kHeadTile; i += kAttentionThreads) {
    const int t = i / kHeadTile, s = i % kHeadTile;
    const bool inside = query + t < p.queries && key + s < p.keys;
    mask[t * kMaskStride + s] =
        inside ? from[(query + t) * p.mask_query + (key + s) * p.mask_key] : uint8_t{0};
  }
}

// Returns the address of a query's largest score (plane 0), or of its sum (plane 1).
TFJOB_DEVICE float* StatisticOf(const AttentionParameter& p, const HeadTile& tile, int plane,
                                int query) {
  const int64_t row = (static_cast<int64_t>(plane) * p.batch + tile.batch) * p.heads + tile.head;
  return p.statistics + row * p.statistics_stride + query;
}

// The factor by which dropout multiplies a weight: 0 if it is dropped.
TFJOB_DEVICE float KeepFactor(const AttentionParameter& p, uint32_t word) {
  return word >= p.threshold ? p.keep : 0.0f;
}

// Returns a word by an index that is not a constant, without an array in local memory.
TFJOB_DEVICE uint32_t WordAt(const Words& words, uint32_t index) {
  const uint32_t low = (index & 1) == 0 ? words.word[0] : words.word[1];
  const uint32_t high = (index & 1) == 0 ? words.word[2] : words.word[3];
  return (index & 2) == 0 ? low : high;
}

// Returns the factors of a query's weights of two neighbouring keys.
TFJOB_DEVICE float2 KeepFactors(const AttentionParameter& p, const HeadTile& tile, int query,
                                int key) {
  if (p.drops == 0) return {1.0f, 1.0f};
  const uint32_t row =
      static_cast<uint32_t>(tile.batch * p.heads + tile.head) * static_cast<uint32_t>(p.queries) +
      static_cast<uint32_t>(query);
  const uint32_t element = row * static_cast<uint32_t>(p.keys) + static_cast<uint32_t>(key);
  const Words words = Draw(p.words, element / 4, 0);
  const uint32_t first = WordAt(words, element % 4);
  const uint32_t second =
      element % 4 == 3 ? Draw(p.words, element / 4 + 1, 0).word[0] : WordAt(words, element % 4 + 1);
  return {KeepFactor(p, first), KeepFactor(p, second)};
}

TFJOB_DEVICE bool Masked(const AttentionParameter& p, const uint8_t* mask, int query, int key) {
  return p.mask != nullptr && mask[query * kMaskStride + key] == 0;
}

// On each lane, returns the sum of the four lanes that hold a row.
TFJOB_DEVICE float SumOfRow(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

// Multiplies 16 rows, which the lanes hold, with the transpose of 8 rows of the matrix.
template <int kDepth, typename Half>
TFJOB_DEVICE void MultiplyTransposed(const uint32_t (&rows)[kDepth / 16][4], const Half* matrix,
                                     int row, float (&c)[4]) {
  TFJOB_UNROLLED
  for (int i = 0; i < 4; ++i) c[i] = 0.0f;
  TFJOB_UNROLLED
  for (int k = 0; k < kDepth / 16; ++k) {
    uint32_t b[2];
    LoadTransposed<kDepth>(matrix, row, k * 16, b);
    MultiplyAccumulate<Half>(rows[k], b, c);
  }
}

// Adds the product of weights [16,16] and 16 rows of the matrix.
template <int kDepth, typename Half>
TFJOB_DEVICE void AddProduct(const uint32_t (&weights)[4], const Half* matrix, int row,
                             float (&sum)[kDepth / 8][4]) {
  TFJOB_UNROLLED
  for (int n = 0; n < kDepth / 8; ++n) {
    uint32_t b[2];
    LoadRight<kDepth>(matrix, row, n * 8, b);
    MultiplyAccumulate<Half>(weights, b, sum[n]);
  }
}

template <int kDepth, typename Half>
TFJOB_DEVICE void LoadLeftRows(const Half* matrix, int row, uint32_t (&rows)[kDepth / 16][4]) {
  TFJOB_UNROLLED
  for (int k = 0; k < kDepth / 16; ++k) LoadLeft<kDepth>(matrix, row, k * 16, rows[k]);
}

template <int kCount>
TFJOB_DEVICE void Clear(float (&sum)[kCount][4]) {
  TFJOB_UNROLLED
  for (int n = 0; n < kCount; ++n) {
    TFJOB_UNROLLED
    for (int i = 0; i < 4; ++i) sum[n][i] = 0.0f;
  }
}

// Copies the warp's rows of a result to device memory, through shared memory. `upper` and `lower`
// multiply the rows g and g + 8.
template <int kDepth, typename Half>
TFJOB_DEVICE void StoreResult(const float (&sum)[kDepth / 8][4], float upper, float lower,
                              Half* matrix, const HeadRows<Half>& rows) {
  __syncthreads();  // others may still read the matrix
  TFJOB_UNROLLED
  for (int n = 0; n < kDepth / 8; ++n)
    StoreBlock<kDepth>(matrix, static_cast<int>(threadIdx.x) / kWarp * 16, n * 8, sum[n], upper,
                       lower);
  __syncthreads();
  StoreRows<kDepth>(matrix, rows);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
