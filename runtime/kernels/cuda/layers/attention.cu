// Computes attention without storing the scores (ops.md, "Attention"). A block computes the queries
// of one tile, and reads the tiles of keys one after another. The matrix units multiply half types,
// and add in float32. The order of all sums depends only on the shapes.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/layers/attention_parameters.h"
#include "runtime/kernels/cuda/layers/attention_tiles.h"
#include "runtime/kernels/cuda/layers/matrix_units.h"

namespace tfjob::kernels::cuda {
namespace {

// On each lane, returns the largest value of the four lanes that hold a row.
TFJOB_DEVICE float MaximumOfRow(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}

// The numbers of a lane's two queries while it adds up the weights.
struct RunningMaximum {
  float maximum = -INFINITY, sum = 0.0f;

  // Returns the factor for the sums that were computed with the previous maximum.
  TFJOB_DEVICE float Raise(float score) {
    const float previous = maximum;
    maximum = fmaxf(maximum, score);
    const float factor = previous == maximum ? 1.0f : expf(previous - maximum);
    sum *= factor;
    return factor;
  }
  // If all scores are -infinity, their differences are NaN; the sum is then 0, and y becomes NaN.
  TFJOB_DEVICE float Weight(float score) const {
    return maximum == -INFINITY && score == -INFINITY ? 0.0f : expf(score - maximum);
  }
};

// The number of keys whose weights a warp computes at a time. A larger number would need more
// registers than a thread has.
template <int kDepth>
constexpr int kWeights = kDepth > kAttentionShort ? kHeadTile / 2 : kHeadTile;

// Computes the scores of the warp's queries and some of the tile's keys, of which the first is at
// `first`. Scores of keys beyond the last one are -infinity.
template <int kDepth, typename Half>
TFJOB_DEVICE void Score(const AttentionParameter& p, const uint32_t (&q)[kDepth / 16][4],
                        const Half* keys, const uint8_t* mask, int row, int first, int key,
                        float (&scores)[kWeights<kDepth> / 8][4]) {
  const int t = static_cast<int>(threadIdx.x) % 4;
  TFJOB_UNROLLED
  for (int n = 0; n < kWeights<kDepth> / 8; ++n) {
    MultiplyTransposed<kDepth>(q, keys, first + n * 8, scores[n]);
    TFJOB_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const int col = first + n * 8 + t * 2 + i % 2;
      float score = scores[n][i] * p.scale;
      if (key + col >= p.keys) {
        score = -INFINITY;
      } else if (Masked(p, mask, row + i / 2 * 8, col)) {
        score = p.masked;
      }
      scores[n][i] = score;
    }
  }
}

// Replaces the scores by the weights, without the division by their sum, and multiplies the sums by
// the factors that the new maxima require.
template <int kDepth>
TFJOB_DEVICE void Weigh(float (&scores)[kWeights<kDepth> / 8][4], RunningMaximum (&running)[2],
                        float (&y)[kDepth / 8][4]) {
  TFJOB_UNROLLED
  for (int half = 0; half < 2; ++half) {
    float most = -INFINITY;
    TFJOB_UNROLLED
    for (int n = 0; n < kWeights<kDepth> / 8; ++n)
      most = fmaxf(most, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
    const float factor = running[half].Raise(MaximumOfRow(most));
    float sum = 0.0f;
    TFJOB_UNROLLED
    for (int n = 0; n < kWeights<kDepth> / 8; ++n) {
      TFJOB_UNROLLED
      for (int i = 0; i < 2; ++i) {
        float& score = scores[n][half * 2 + i];
        score = running[half].Weight(score);
        sum += score;
      }
    }
    running[half].sum += SumOfRow(sum);
    TFJOB_UNROLLED
    for (int n = 0; n < kDepth / 8; ++n) {
      y[n][half * 2] *= factor;
      y[n][half * 2 + 1] *= factor;
    }
  }
}

// Applies dropout to the weights, and clears those of masked keys.
template <int kCount>
TFJOB_DEVICE void DropWeights(const AttentionParameter& p, const HeadTile& tile,
                              const uint8_t* mask, int row, int first, int key,
                              float (&weights)[kCount][4]) {
  if (p.drops == 0 && p.clears == 0) return;
  const int t = static_cast<int>(threadIdx.x) % 4;
  TFJOB_UNROLLED
  for (int n = 0; n < kCount; ++n) {
    TFJOB_UNROLLED
    for (int half = 0; half < 2; ++half) {
      const int query = row + half * 8, col = first + n * 8 + t * 2;
      const float2 kept = KeepFactors(p, tile, tile.first + query, key + col);
      weights[n][half * 2] *= kept.x;
      weights[n][half * 2 + 1] *= kept.y;
      if (p.clears == 0) continue;
      if (Masked(p, mask, query, col)) weights[n][half * 2] = 0.0f;
      if (Masked(p, mask, query, col + 1)) weights[n][half * 2 + 1] = 0.0f;
    }
  }
}

// Adds the product of the weights and the values of the keys from `first` on.
template <int kDepth, int kCount, typename Half>
TFJOB_DEVICE void AddWeighted(const float (&weights)[kCount][4], const Half* values, int first,
                              float (&y)[kDepth / 8][4]) {
  TFJOB_UNROLLED
  for (int n = 0; n < kCount; n += 2) {
    const float(&left)[4] = weights[n], (&right)[4] = weights[n + 1];
    const uint32_t a[4] = {PairOf<Half>(left[0], left[1]), PairOf<Half>(left[2], left[3]),
                           PairOf<Half>(right[0], right[1]), PairOf<Half>(right[2], right[3])};
    AddProduct<kDepth>(a, values, first + n * 8, y);
  }
}

template <int kDepth, typename Half>
TFJOB_DEVICE void Attend(const AttentionParameter& p, Half* keys, Half* values, uint8_t* mask) {
  const HeadTile tile(p, p.queries);
  const int warp_row = static_cast<int>(threadIdx.x) / kWarp * 16;
  const int row = warp_row + static_cast<int>(threadIdx.x) % kWarp / 4;
  uint32_t q[kDepth / 16][4];
  LoadRows<kDepth>(HeadRows<Half>(p, p.q, tile, p.queries, tile.first, p.depth), keys);
  __syncthreads();
  LoadLeftRows<kDepth>(keys, warp_row, q);
  float y[kDepth / 8][4];
  Clear(y);
  RunningMaximum running[2];
  for (int key = 0; key < p.keys; key += kHeadTile) {
    __syncthreads();
    LoadRows<kDepth>(HeadRows<Half>(p, p.k, tile, p.keys, key, p.depth), keys);
    LoadRows<kDepth>(HeadRows<Half>(p, p.v, tile, p.keys, key, p.value_depth), values);
    LoadMask(p, tile, tile.first, key, mask);
    __syncthreads();
    TFJOB_NOT_UNROLLED
    for (int first = 0; first < kHeadTile; first += kWeights<kDepth>) {
      float weights[kWeights<kDepth> / 8][4];
      Score<kDepth>(p, q, keys, mask, row, first, key, weights);
      Weigh<kDepth>(weights, running, y);
      DropWeights(p, tile, mask, row, first, key, weights);
      AddWeighted<kDepth>(weights, values, first, y);
    }
  }
  if (threadIdx.x % 4 == 0) {
    TFJOB_UNROLLED
    for (int half = 0; half < 2; ++half) {
      const int query = tile.first + row + half * 8;
      if (query >= p.queries) continue;
      *StatisticOf(p, tile, 0, query) = running[half].maximum;
      *StatisticOf(p, tile, 1, query) = running[half].sum;
    }
  }
  StoreResult<kDepth>(y, 1.0f / running[0].sum, 1.0f / running[1].sum, values,
                      HeadRows<Half>(p, p.y, tile, p.queries, tile.first, p.value_depth));
}

}  // namespace

// Defines the kernel for a half type and heads of up to `depth` elements.
#define TFJOB_ATTENTION(Half, depth)                                               \
  TFJOB_KERNEL(Attention##Half##_##depth, AttentionParameter, kAttentionThreads) { \
    __shared__ Half keys[kHeadTile * (depth + kPadding)];                          \
    __shared__ Half values[kHeadTile * (depth + kPadding)];                        \
    __shared__ uint8_t mask[kHeadTile * kMaskStride];                              \
    Attend<depth>(p, keys, values, mask);                                          \
  }

TFJOB_ATTENTION(BFloat16, 64)
TFJOB_ATTENTION(BFloat16, 128)
TFJOB_ATTENTION(Float16, 64)
TFJOB_ATTENTION(Float16, 128)

}  // namespace tfjob::kernels::cuda
