// Normalises the columns of a matrix, and computes the gradients. Terms of sums are added in a tree
// that depends only on the shape.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/vision/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// The column of a thread, and the rows [begin, end) of its block. The thread processes every
// kNormWarps-th row, from begin + threadIdx.y on.
struct NormTile {
  uint32_t part, col;
  int64_t begin, end;
};

TFJOB_DEVICE NormTile TileOfNorm(int64_t rows, uint32_t cols) {
  const uint32_t tiles = (cols + kWarp - 1) / kWarp, part = blockIdx.x / tiles;
  const int64_t begin = static_cast<int64_t>(part) * kNormRows;
  return {part, (blockIdx.x - part * tiles) * kWarp + threadIdx.x, begin,
          begin + kNormRows < rows ? begin + kNormRows : rows};
}

// On each thread of a column, returns the sum over the column's threads. `sums` must not be in use.
TFJOB_DEVICE float SumOfColumn(float (*sums)[kWarp], float value) {
  sums[threadIdx.y][threadIdx.x] = value;
  for (unsigned half = kNormWarps / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + half][threadIdx.x];
  }
  __syncthreads();
  return sums[0][threadIdx.x];
}

// The mean of some rows, and the sum of their squared deviations from it.
struct Moments {
  float mean, squares, rows;
};

// Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979.
TFJOB_DEVICE Moments Merged(const Moments& a, const Moments& b) {
  if (a.rows == 0.0f) return b;
  if (b.rows == 0.0f) return a;
  const float rows = a.rows + b.rows, share = b.rows / rows, apart = b.mean - a.mean;
  return {a.mean + apart * share, a.squares + b.squares + apart * apart * (a.rows * share), rows};
}

TFJOB_DEVICE Moments MomentsAt(const float (*moments)[kNormWarps][kWarp], unsigned warp) {
  return {moments[0][warp][threadIdx.x], moments[1][warp][threadIdx.x],
          moments[2][warp][threadIdx.x]};
}

TFJOB_DEVICE void StoreMoments(float (*moments)[kNormWarps][kWarp], const Moments& m) {
  moments[0][threadIdx.y][threadIdx.x] = m.mean;
  moments[1][threadIdx.y][threadIdx.x] = m.squares;
  moments[2][threadIdx.y][threadIdx.x] = m.rows;
}

// Returns the factor by which a column's values are multiplied after the mean has been subtracted.
TFJOB_DEVICE float FactorOf(const BatchNormChannels& channels, uint32_t col) {
  return channels.gamma[col] / sqrtf(channels.variance[col] + channels.epsilon);
}

// Returns the normalised value before the activation. The gradient calls this function, too, to
// determine whether the activation has let the value pass; the results must be rounded in the same
// way.
TFJOB_DEVICE float Normalised(float x, float mean, float factor, float beta) {
  return fmaf(x - mean, factor, beta);
}

}  // namespace

TFJOB_KERNEL(ColumnMoments, ColumnMomentsParameter, kWarp* kNormWarps) {
  __shared__ float sums[kNormWarps][kWarp];
  const NormTile tile = TileOfNorm(p.rows, p.cols);
  const bool inside = tile.col < p.cols;
  const float* const in = p.in + tile.col;
  float sum = 0.0f;
  if (inside) {
    for (int64_t row = tile.begin + threadIdx.y; row < tile.end; row += kNormWarps)
      sum += in[row * p.in_stride];
  }
  const float mean = SumOfColumn(sums, sum) / static_cast<float>(tile.end - tile.begin);
  __syncthreads();  // all threads have read the sum
  float squares = 0.0f;
  if (inside) {
    for (int64_t row = tile.begin + threadIdx.y; row < tile.end; row += kNormWarps) {
      const float apart = in[row * p.in_stride] - mean;
      squares += apart * apart;
    }
  }
  squares = SumOfColumn(sums, squares);
  if (threadIdx.y != 0 || !inside) return;
  const int64_t to = static_cast<int64_t>(tile.part) * p.cols + tile.col;
  p.mean[to] = mean;
  p.squares[to] = squares / p.divisor;
}

TFJOB_KERNEL(MergeMoments, MergeMomentsParameter, kWarp* kNormWarps) {
  __shared__ float shared[3][kNormWarps][kWarp];
  const NormTile tile = TileOfNorm(p.parts, p.cols);
  const bool inside = tile.col < p.cols;
  Moments all{0.0f, 0.0f, 0.0f};
  if (inside) {
    for (int64_t part = tile.begin + threadIdx.y; part < tile.end; part += kNormWarps) {
      const int64_t left = p.rows - part * p.part_rows, at = part * p.cols + tile.col;
      const auto rows = static_cast<float>(left < p.part_rows ? left : p.part_rows);
      all = Merged(all, {p.mean_in[at], p.squares_in[at], rows});
    }
  }
  StoreMoments(shared, all);
  for (unsigned half = kNormWarps / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
    all = Merged(all, MomentsAt(shared, threadIdx.y + half));
    StoreMoments(shared, all);
  }
  if (threadIdx.y != 0 || !inside) return;
  const int64_t to = static_cast<int64_t>(tile.part) * p.cols + tile.col;
  p.mean[to] = all.mean;
  p.squares[to] = all.squares / p.divisor;
}

TFJOB_KERNEL(BatchNorm, BatchNormParameter, kWarp* kNormWarps) {
  const NormTile tile = TileOfNorm(p.rows, p.cols);
  if (tile.col >= p.cols) return;
  const float mean = p.channels.mean[tile.col], beta = p.channels.beta[tile.col];
  const float factor = FactorOf(p.channels, tile.col);
  for (int64_t row = tile.begin + threadIdx.y; row < tile.end; row += kNormWarps) {
    float value = Normalised(p.x[row * p.x_stride + tile.col], mean, factor, beta);
    if (p.side != nullptr) value += p.side[row * p.side_stride + tile.col];
    if (p.relu != 0 && value < 0.0f) value = 0.0f;
    p.y[row * p.y_stride + tile.col] = value;
  }
}

TFJOB_KERNEL(BatchNormSums, BatchNormSumsParameter, kWarp* kNormWarps) {
  __shared__ float sums[kNormWarps][kWarp];
  const NormTile tile = TileOfNorm(p.rows, p.cols);
  const bool inside = tile.col < p.cols;
  float plain = 0.0f, products = 0.0f;
  if (inside) {
    const float mean = p.channels.mean[tile.col], beta = p.channels.beta[tile.col];
    const float factor = FactorOf(p.channels, tile.col);
    for (int64_t row = tile.begin + threadIdx.y; row < tile.end; row += kNormWarps) {
      const float x = p.x[row * p.x_stride + tile.col];
      float g = p.dy[row * p.dy_stride + tile.col];
      if (p.more != nullptr) g += p.more[row * p.more_stride + tile.col];
      if (p.passed_by == PassedBy::kComputed && !(Normalised(x, mean, factor, beta) > 0.0f))
        g = 0.0f;
      if (p.passed_by == PassedBy::kRead && !(p.y[row * p.y_stride + tile.col] > 0.0f)) g = 0.0f;
      if (p.d_side != nullptr) p.d_side[row * p.d_side_stride + tile.col] = g;
      plain += g;
      products += g * (x - mean);
    }
  }
  plain = SumOfColumn(sums, plain);
  __syncthreads();  // all threads have read the sum
  products = SumOfColumn(sums, products);
  if (threadIdx.y != 0 || !inside) return;
  float* const to = p.sums + static_cast<int64_t>(tile.part) * 2 * p.cols + tile.col;
  to[0] = plain;
  to[p.cols] = products;
}

// With n rows, r = 1/√(variance + epsilon), d_beta = Σ g and d_gamma = r·Σ g·(x - mean):
//   dx = gamma·r·(g - Σ g/n - (x - mean)·r²·Σ g·(x - mean)/n)
TFJOB_KERNEL(BatchNormGrad, BatchNormGradParameter, kWarp* kNormWarps) {
  const NormTile tile = TileOfNorm(p.rows, p.cols);
  if (tile.col >= p.cols) return;
  const float mean = p.channels.mean[tile.col], beta = p.channels.beta[tile.col];
  const float factor = FactorOf(p.channels, tile.col);
  const float spread = p.channels.variance[tile.col] + p.channels.epsilon;
  const float plain = p.sums[tile.col], products = p.sums[p.cols + tile.col];
  const auto rows = static_cast<float>(p.rows);
  const float shift = factor * (plain / rows), slope = factor * (products / rows) / spread;
  for (int64_t row = tile.begin + threadIdx.y; row < tile.end; row += kNormWarps) {
    const float x = p.x[row * p.x_stride + tile.col];
    float g = p.dy[row * p.dy_stride + tile.col];
    if (p.passed_by == PassedBy::kComputed && !(Normalised(x, mean, factor, beta) > 0.0f)) g = 0.0f;
    p.dx[row * p.dx_stride + tile.col] = factor * g - shift - (x - mean) * slope;
  }
  if (tile.part != 0 || threadIdx.y != 0) return;
  p.d_gamma[tile.col] = products / sqrtf(spread);
  p.d_beta[tile.col] = plain;
}

}  // namespace tfjob::kernels::cuda
