// Normalizes rows, and computes the gradients (ops.md, "LayerNormalization"). The order of all sums
// depends only on the shapes.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/layers/normalization_parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// The row that a warp computes.
TFJOB_DEVICE int64_t NormalizedRow() {
  return static_cast<int64_t>(blockIdx.x) * kNormalizationWarps + threadIdx.x / kWarp;
}

// Calls f(column, count) for all columns of a lane: four at a time, or one.
template <typename F>
TFJOB_DEVICE void ForColumns(int cols, bool quads, F f) {
  const int lane = threadIdx.x % kWarp;
  if (quads) {
    for (int c = lane * 4; c < cols; c += kWarp * 4) f(c);
  } else {
    for (int c = lane; c < cols; c += kWarp) f(c);
  }
}

TFJOB_DEVICE bool InQuads(const NormalizationTensor& x, int cols) {
  const uintptr_t bytes = x.type == FloatType::kFloat32 ? 16 : 8;
  return cols % 4 == 0 && x.stride % 4 == 0 && reinterpret_cast<uintptr_t>(x.data) % bytes == 0;
}

// Reads four elements, or one element and zeros.
TFJOB_DEVICE float4 ReadSome(const NormalizationTensor& x, int64_t row, int c, bool quads) {
  const int64_t at = row * x.stride + c;
  if (quads) return ReadQuad(x.data, x.type, at);
  return {ReadFloat(x.data, x.type, at), 0.0f, 0.0f, 0.0f};
}
TFJOB_DEVICE void WriteSome(const NormalizationTensor& x, int64_t row, int c, bool quads,
                            float4 value) {
  const int64_t at = row * x.stride + c;
  if (quads) return WriteQuad(x.data, x.type, at, value);
  WriteFloat(x.data, x.type, at, value.x);
}

TFJOB_DEVICE float4 Centered(float4 x, float mean, bool quads) {
  if (!quads) return {x.x - mean, 0.0f, 0.0f, 0.0f};
  return {x.x - mean, x.y - mean, x.z - mean, x.w - mean};
}
TFJOB_DEVICE float4 Times(float4 a, float4 b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}
TFJOB_DEVICE float4 Times(float4 a, float b) {
  return {a.x * b, a.y * b, a.z * b, a.w * b};
}
TFJOB_DEVICE float4 Plus(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
TFJOB_DEVICE float Total(float4 a) {
  return (a.x + a.y) + (a.z + a.w);
}

}  // namespace

TFJOB_KERNEL(LayerNormalization, LayerNormalizationParameter, kNormalizationWarps * 32) {
  const int64_t row = NormalizedRow();
  if (row >= p.rows) return;
  const bool quads = InQuads(p.x, p.cols) && InQuads(p.y, p.cols) && InQuads(p.gamma, p.cols) &&
                     InQuads(p.beta, p.cols);
  const float count = static_cast<float>(p.cols);
  float sum = 0.0f;
  ForColumns(p.cols, quads, [&](int c) { sum += Total(ReadSome(p.x, row, c, quads)); });
  const float mean = WarpSum(sum) / count;
  float squares = 0.0f;
  ForColumns(p.cols, quads, [&](int c) {
    const float4 d = Centered(ReadSome(p.x, row, c, quads), mean, quads);
    squares += Total(Times(d, d));
  });
  const float factor = 1.0f / sqrtf(WarpSum(squares) / count + p.epsilon);
  ForColumns(p.cols, quads, [&](int c) {
    const float4 d = Centered(ReadSome(p.x, row, c, quads), mean, quads);
    const float4 scale = Times(ReadSome(p.gamma, 0, c, quads), factor);
    WriteSome(p.y, row, c, quads, Plus(Times(d, scale), ReadSome(p.beta, 0, c, quads)));
  });
  if (threadIdx.x % kWarp != 0) return;
  p.statistics[row] = mean;
  p.statistics[p.statistics_stride + row] = factor;
}

TFJOB_KERNEL(LayerNormalizationGrad, LayerNormalizationParameter, kNormalizationWarps * 32) {
  const int64_t row = NormalizedRow();
  if (row >= p.rows) return;
  const bool adds = p.added.data != nullptr;
  const bool quads = InQuads(p.x, p.cols) && InQuads(p.y, p.cols) && InQuads(p.dx, p.cols) &&
                     InQuads(p.gamma, p.cols) && (!adds || InQuads(p.added, p.cols));
  const float mean = p.statistics[row], factor = p.statistics[p.statistics_stride + row];
  // d: the gradient of the normalized element n, which is dy·gamma.
  float sum = 0.0f, dot = 0.0f;
  ForColumns(p.cols, quads, [&](int c) {
    const float4 d = Times(ReadSome(p.y, row, c, quads), ReadSome(p.gamma, 0, c, quads));
    sum += Total(d);
    dot += Total(Times(d, Centered(ReadSome(p.x, row, c, quads), mean, quads)));
  });
  const float count = static_cast<float>(p.cols);
  sum = WarpSum(sum) / count;
  dot = WarpSum(dot) * factor * factor / count;
  ForColumns(p.cols, quads, [&](int c) {
    const float4 d = Times(ReadSome(p.y, row, c, quads), ReadSome(p.gamma, 0, c, quads));
    const float4 n = Centered(ReadSome(p.x, row, c, quads), mean, quads);
    float4 dx = Times(Plus(Centered(d, sum, quads), Times(n, -dot)), factor);
    if (adds) dx = Plus(dx, ReadSome(p.added, row, c, quads));
    WriteSome(p.dx, row, c, quads, dx);
  });
}

// Adds up the gradients of gamma and beta over a part of the rows.
TFJOB_KERNEL(LayerNormalizationSums, LayerNormalizationParameter, kNormalizationColumns) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kNormalizationRows;
  const int64_t end = first + kNormalizationRows < p.rows ? first + kNormalizationRows : p.rows;
  for (int c = threadIdx.x; c < p.cols; c += kNormalizationColumns) {
    float gamma = 0.0f, beta = 0.0f;
    for (int64_t row = first; row < end; ++row) {
      const float dy = ReadFloat(p.y.data, p.y.type, row * p.y.stride + c);
      const float x = ReadFloat(p.x.data, p.x.type, row * p.x.stride + c);
      gamma += dy * ((x - p.statistics[row]) * p.statistics[p.statistics_stride + row]);
      beta += dy;
    }
    p.gamma_sums[static_cast<int64_t>(blockIdx.x) * p.cols + c] = gamma;
    p.beta_sums[static_cast<int64_t>(blockIdx.x) * p.cols + c] = beta;
  }
}

}  // namespace tfjob::kernels::cuda
