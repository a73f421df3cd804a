// Computes the gradients of attention, for which it computes the scores again. In AttentionQueries,
// each block computes the gradients of a tile of queries, and sums over all keys. In AttentionKeys,
// each block computes those of a tile of keys, and sums over all queries. No two blocks therefore
// add to the same element, and the order of all sums depends only on the shapes.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/layers/attention_parameters.h"
#include "runtime/kernels/cuda/layers/attention_tiles.h"
#include "runtime/kernels/cuda/layers/matrix_units.h"

namespace tfjob::kernels::cuda {
namespace {

// The numbers of a query: its largest score, the inverse of Σ exp(score - largest), and Σ dy·y.
struct QueryNumbers {
  float largest, inverse, sum;
};

// The weight of a key, and the gradient of its score.
struct WeightAndGradient {
  float weight, gradient;
};

// Returns the weight of a masked or dropped key, and the gradient of its score, which is still to
// be multiplied by the scale. `dot` is the product of the query's dy and the key's value.
TFJOB_DEVICE WeightAndGradient Backward(const AttentionParameter& p, float score, float dot,
                                        const QueryNumbers& query, float kept, bool masked) {
  const float weight = expf((masked ? p.masked : score * p.scale) - query.largest) * query.inverse;
  const float used = masked && p.clears != 0 ? 0.0f : weight * kept;
  return {used, masked ? 0.0f : weight * (dot * kept - query.sum)};
}

// The numbers of a tile's queries, in shared memory.
struct TileNumbers {
  float largest[kHeadTile], inverse[kHeadTile], sum[kHeadTile];
};

// Returns the address of a query's Σ dy·y, which AttentionQueries computes for AttentionKeys.
TFJOB_DEVICE float* SumOf(const AttentionParameter& p, const HeadTile& tile, int query) {
  return p.sums + (static_cast<int64_t>(tile.batch) * p.heads + tile.head) * p.queries + query;
}

// Returns zeros for a query beyond the last one, so that its weights are 0.
TFJOB_DEVICE QueryNumbers NumbersOf(const AttentionParameter& p, const HeadTile& tile, int query,
                                    float sum) {
  if (query >= p.queries) return {0.0f, 0.0f, 0.0f};
  return {*StatisticOf(p, tile, 0, query), 1.0f / *StatisticOf(p, tile, 1, query), sum};
}

// Returns Σ dy·y of the lane's two queries. `rows` contains dy, and `matrix` contains y.
template <int kDepth, typename Half>
TFJOB_DEVICE float2 SumOfProducts(const uint32_t (&rows)[kDepth / 16][4], const Half* matrix,
                                  int row) {
  float2 sum{0.0f, 0.0f};
  TFJOB_UNROLLED
  for (int k = 0; k < kDepth / 16; ++k) {
    uint32_t y[4];
    LoadLeft<kDepth>(matrix, row, k * 16, y);
    TFJOB_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const float2 a = WidenPair<Half>(rows[k][i]), b = WidenPair<Half>(y[i]);
      (i % 2 == 0 ? sum.x : sum.y) += a.x * b.x + a.y * b.y;
    }
  }
  return {SumOfRow(sum.x), SumOfRow(sum.y)};
}

// Returns the gradients of the scores of the warp's queries and 16 keys, as the operand a.
template <int kDepth, typename Half>
TFJOB_DEVICE void GradientOfScores(const AttentionParameter& p, const HeadTile& tile,
                                   const uint32_t (&q)[kDepth / 16][4],
                                   const uint32_t (&dy)[kDepth / 16][4], const Half* keys,
                                   const Half* values, const uint8_t* mask, int row, int key,
                                   int chunk, const QueryNumbers (&numbers)[2], uint32_t (&a)[4]) {
  const int t = static_cast<int>(threadIdx.x) % 4;
  TFJOB_UNROLLED
  for (int part = 0; part < 2; ++part) {
    const int col = chunk * kStep + part * 8;
    float scores[4], dots[4];
    MultiplyTransposed<kDepth>(q, keys, col, scores);
    MultiplyTransposed<kDepth>(dy, values, col, dots);
    TFJOB_UNROLLED
    for (int half = 0; half < 2; ++half) {
      const int query = row + half * 8, at = col + t * 2;
      const float2 kept = KeepFactors(p, tile, tile.first + query, key + at);
      float gradient[2];
      TFJOB_UNROLLED
      for (int i = 0; i < 2; ++i) {
        const bool outside = key + at + i >= p.keys;
        gradient[i] = Backward(p, scores[half * 2 + i], dots[half * 2 + i], numbers[half],
                               i == 0 ? kept.x : kept.y, outside || Masked(p, mask, query, at + i))
                          .gradient;
      }
      a[part * 2 + half] = PairOf<Half>(gradient[0], gradient[1]);
    }
  }
}

template <int kDepth, typename Half>
TFJOB_DEVICE void GradientOfQueries(const AttentionParameter& p, Half* keys, Half* values,
                                    uint8_t* mask) {
  const HeadTile tile(p, p.queries);
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * 16;
  const int row = warp_row + static_cast<int>(threadIdx.x) % kWarp / 4;
  uint32_t q[kDepth / 16][4], dy[kDepth / 16][4];
  LoadRows<kDepth>(HeadRows<Half>(p, p.q, tile, p.queries, tile.first, p.depth), keys);
  LoadRows<kDepth>(HeadRows<Half>(p, p.dy, tile, p.queries, tile.first, p.value_depth), values);
  __syncthreads();
  LoadLeftRows<kDepth>(keys, warp_row, q);
  LoadLeftRows<kDepth>(values, warp_row, dy);
  __syncthreads();
  LoadRows<kDepth>(HeadRows<Half>(p, p.y, tile, p.queries, tile.first, p.value_depth), values);
  __syncthreads();
  const float2 sum = SumOfProducts<kDepth>(dy, values, warp_row);
  QueryNumbers numbers[2];
  TFJOB_UNROLLED
  for (int half = 0; half < 2; ++half) {
    const int query = tile.first + row + half * 8;
    numbers[half] = NumbersOf(p, tile, query, half == 0 ? sum.x : sum.y);
    if (query < p.queries && threadIdx.x % 4 == 0) *SumOf(p, tile, query) = numbers[half].sum;
  }
  float dq[kDepth / 8][4];
  Clear(dq);
  for (int key = 0; key < p.keys; key += kHeadTile) {
    __syncthreads();
    LoadRows<kDepth>(HeadRows<Half>(p, p.k, tile, p.keys, key, p.depth), keys);
    LoadRows<kDepth>(HeadRows<Half>(p, p.v, tile, p.keys, key, p.value_depth), values);
    LoadMask(p, tile, tile.first, key, mask);
    __syncthreads();
    TFJOB_NOT_UNROLLED
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      uint32_t a[4];
      GradientOfScores<kDepth>(p, tile, q, dy, keys, values, mask, row, key, chunk, numbers, a);
      AddProduct<kDepth>(a, keys, chunk * kStep, dq);
    }
  }
  StoreResult<kDepth>(dq, p.scale, p.scale, keys,
                      HeadRows<Half>(p, p.dq, tile, p.queries, tile.first, p.depth));
}

// Copies the numbers of a tile of queries to shared memory.
TFJOB_DEVICE void LoadNumbers(const AttentionParameter& p, const HeadTile& tile, int query,
                              TileNumbers& numbers) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= kHeadTile) return;
  const float sum = query + i < p.queries ? *SumOf(p, tile, query + i) : 0.0f;
  const QueryNumbers own = NumbersOf(p, tile, query + i, sum);
  numbers.largest[i] = own.largest;
  numbers.inverse[i] = own.inverse;
  numbers.sum[i] = own.sum;
}

// Returns the factor of one weight.
TFJOB_DEVICE float KeepFactorAt(const AttentionParameter& p, const HeadTile& tile, int query,
                                int key) {
  if (p.drops == 0) return 1.0f;
  const uint32_t row =
      static_cast<uint32_t>(tile.batch * p.heads + tile.head) * static_cast<uint32_t>(p.queries) +
      static_cast<uint32_t>(query);
  const uint32_t element = row * static_cast<uint32_t>(p.keys) + static_cast<uint32_t>(key);
  return KeepFactor(p, WordAt(Draw(p.words, element / 4, 0), element % 4));
}

// Returns the transposed weights of the warp's keys and 16 queries, and the gradients of their
// scores, both as the operand a.
template <int kDepth, typename Half>
TFJOB_DEVICE void TransposedGradient(const AttentionParameter& p, const HeadTile& tile,
                                     const uint32_t (&k)[kDepth / 16][4],
                                     const uint32_t (&v)[kDepth / 16][4], const Half* queries,
                                     const Half* gradients, const uint8_t* mask,
                                     const TileNumbers& numbers, int row, int query, int chunk,
                                     uint32_t (&weights)[4], uint32_t (&scores)[4]) {
  const int t = static_cast<int>(threadIdx.x) % 4;
  TFJOB_UNROLLED
  for (int part = 0; part < 2; ++part) {
    const int col = chunk * kStep + part * 8;
    float kept[4], score[4], dot[4];
    TFJOB_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const int at = query + col + t * 2 + i % 2;
      kept[i] = KeepFactorAt(p, tile, at, tile.first + row + i / 2 * 8);
    }
    MultiplyTransposed<kDepth>(k, queries, col, score);
    MultiplyTransposed<kDepth>(v, gradients, col, dot);
    TFJOB_UNROLLED
    for (int half = 0; half < 2; ++half) {
      const int key = row + half * 8;
      WeightAndGradient both[2];
      TFJOB_UNROLLED
      for (int i = 0; i < 2; ++i) {
        const int at = col + t * 2 + i;
        both[i] = Backward(p, score[half * 2 + i], dot[half * 2 + i],
                           {numbers.largest[at], numbers.inverse[at], numbers.sum[at]},
                           kept[half * 2 + i], Masked(p, mask, at, key));
      }
      weights[part * 2 + half] = PairOf<Half>(both[0].weight, both[1].weight);
      scores[part * 2 + half] = PairOf<Half>(both[0].gradient, both[1].gradient);
    }
  }
}

template <int kDepth, typename Half>
TFJOB_DEVICE void GradientOfKeys(const AttentionParameter& p, Half* queries, Half* gradients,
                                 uint8_t* mask, TileNumbers& numbers) {
  const HeadTile tile(p, p.keys);
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * 16;
  const int row = warp_row + static_cast<int>(threadIdx.x) % kWarp / 4;
  uint32_t k[kDepth / 16][4], v[kDepth / 16][4];
  LoadRows<kDepth>(HeadRows<Half>(p, p.k, tile, p.keys, tile.first, p.depth), queries);
  LoadRows<kDepth>(HeadRows<Half>(p, p.v, tile, p.keys, tile.first, p.value_depth), gradients);
  __syncthreads();
  LoadLeftRows<kDepth>(queries, warp_row, k);
  LoadLeftRows<kDepth>(gradients, warp_row, v);
  float dk[kDepth / 8][4], dv[kDepth / 8][4];
  Clear(dk);
  Clear(dv);
  for (int query = 0; query < p.queries; query += kHeadTile) {
    __syncthreads();
    LoadRows<kDepth>(HeadRows<Half>(p, p.q, tile, p.queries, query, p.depth), queries);
    LoadRows<kDepth>(HeadRows<Half>(p, p.dy, tile, p.queries, query, p.value_depth), gradients);
    LoadMask(p, tile, query, tile.first, mask);
    LoadNumbers(p, tile, query, numbers);
    __syncthreads();
    TFJOB_NOT_UNROLLED
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      uint32_t weights[4], scores[4];
      TransposedGradient<kDepth>(p, tile, k, v, queries, gradients, mask, numbers, row, query,
                                 chunk, weights, scores);
      AddProduct<kDepth>(weights, gradients, chunk * kStep, dv);
      AddProduct<kDepth>(scores, queries, chunk * kStep, dk);
    }
  }
  StoreResult<kDepth>(dk, p.scale, p.scale, queries,
                      HeadRows<Half>(p, p.dk, tile, p.keys, tile.first, p.depth));
  StoreResult<kDepth>(dv, 1.0f, 1.0f, gradients,
                      HeadRows<Half>(p, p.dv, tile, p.keys, tile.first, p.value_depth));
}

}  // namespace

// Define the kernels for a half type and heads of up to `depth` elements.
#define TFJOB_ATTENTION_QUERIES(Half, depth)                                              \
  TFJOB_KERNEL(AttentionQueries##Half##_##depth, AttentionParameter, kAttentionThreads) { \
    __shared__ Half keys[kHeadTile * (depth + kPadding)];                                 \
    __shared__ Half values[kHeadTile * (depth + kPadding)];                               \
    __shared__ uint8_t mask[kHeadTile * kMaskStride];                                     \
    GradientOfQueries<depth>(p, keys, values, mask);                                      \
  }
#define TFJOB_ATTENTION_KEYS(Half, depth)                                              \
  TFJOB_KERNEL(AttentionKeys##Half##_##depth, AttentionParameter, kAttentionThreads) { \
    __shared__ Half queries[kHeadTile * (depth + kPadding)];                           \
    __shared__ Half gradients[kHeadTile * (depth + kPadding)];                         \
    __shared__ uint8_t mask[kHeadTile * kMaskStride];                                  \
    __shared__ TileNumbers numbers;                                                    \
    GradientOfKeys<depth>(p, queries, gradients, mask, numbers);                       \
  }

TFJOB_ATTENTION_QUERIES(BFloat16, 64)
TFJOB_ATTENTION_QUERIES(BFloat16, 128)
TFJOB_ATTENTION_QUERIES(Float16, 64)
TFJOB_ATTENTION_QUERIES(Float16, 128)
TFJOB_ATTENTION_KEYS(BFloat16, 64)
TFJOB_ATTENTION_KEYS(BFloat16, 128)
TFJOB_ATTENTION_KEYS(Float16, 64)
TFJOB_ATTENTION_KEYS(Float16, 128)

}  // namespace tfjob::kernels::cuda
