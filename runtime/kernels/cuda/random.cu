// Implements the ops that draw random numbers. Each element is computed from the words of
// Philox-4x32-10 that ops.md assigns to it.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/kernels/cuda/random_words.h"

namespace tfjob::kernels::cuda {
namespace {

// Returns whether a thread can access its four elements at once, because the rows are dense and the
// tensor is aligned.
template <typename T>
TFJOB_DEVICE bool IsQuad(const T* tensor, int64_t stride, uint32_t cols) {
  return stride == cols && reinterpret_cast<uintptr_t>(tensor) % (4 * sizeof(T)) == 0;
}

TFJOB_DEVICE float Drop(const DropoutParameter& p, float x, uint32_t word) {
  return word >= p.threshold ? x * p.scale : 0.0f;
}

TFJOB_DEVICE float UniformOf(const RandomUniformParameter& p, uint32_t word) {
  // Uses 24 bits, so that `unit` is an exact float in [0, 1).
  const float unit = static_cast<float>(word >> 8) / 16777216.0f;
  return fminf(p.low + (p.high - p.low) * unit, p.last);
}

// Computes two normally distributed numbers from two words, using the Box–Muller method.
TFJOB_DEVICE float2 NormalPair(uint32_t first, uint32_t second) {
  const double unit = (first + 1.0) / 4294967296.0;  // in (0, 1]
  const double radius = sqrt(-2 * log(unit)), half_turns = second / 2147483648.0;
  return {static_cast<float>(radius * CosPi(half_turns)),
          static_cast<float>(radius * SinPi(half_turns))};
}

TFJOB_DEVICE float4 NormalsOf(const Words& words) {
  const float2 a = NormalPair(words.word[0], words.word[1]);
  const float2 b = NormalPair(words.word[2], words.word[3]);
  return {a.x, a.y, b.x, b.y};
}

// Returns whether a truncated number must be drawn again.
TFJOB_DEVICE bool IsOutside(float value) {
  return fabsf(value) > 2.0f;
}

// Returns the random numbers of a block of words. If truncated, numbers outside the bounds are
// drawn again.
TFJOB_DEVICE float4 NormalsOfBlock(const RandomNormalParameter& p, uint32_t block) {
  float4 n = NormalsOf(Draw(p.words, block, 0));
  for (uint32_t attempt = 1; p.truncated != 0; ++attempt) {
    if (!IsOutside(n.x) && !IsOutside(n.y) && !IsOutside(n.z) && !IsOutside(n.w)) break;
    const float4 again = NormalsOf(Draw(p.words, block, attempt));
    if (IsOutside(n.x)) n.x = again.x;
    if (IsOutside(n.y)) n.y = again.y;
    if (IsOutside(n.z)) n.z = again.z;
    if (IsOutside(n.w)) n.w = again.w;
  }
  return {p.mean + p.stddev * n.x, p.mean + p.stddev * n.y, p.mean + p.stddev * n.z,
          p.mean + p.stddev * n.w};
}

TFJOB_DEVICE void WriteNormal(const RandomNormalParameter& p, uint32_t element, float value) {
  if (element >= p.count) return;
  const uint32_t row = element / p.cols, col = element - row * p.cols;
  p.y[row * p.y_stride + col] = value;
}

// Computes the elements that correspond to a block of words.
template <typename T>
TFJOB_DEVICE void DropBlock(const DropoutParameter& p, const Words& words, uint32_t block) {
  const T* const from = static_cast<const T*>(p.x);
  T* const to = static_cast<T*>(p.y);
  if (block * 4 + 4 <= p.count && IsQuad(from, p.x_stride, p.cols) &&
      IsQuad(to, p.y_stride, p.cols)) {
    const float4 x = Load(from + block * 4);
    return Store(to + block * 4, {Drop(p, x.x, words.word[0]), Drop(p, x.y, words.word[1]),
                                  Drop(p, x.z, words.word[2]), Drop(p, x.w, words.word[3])});
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t element = block * 4 + i;
    if (element >= p.count) return;
    const uint32_t row = element / p.cols, col = element - row * p.cols;
    const float x = static_cast<float>(from[row * p.x_stride + col]);
    to[row * p.y_stride + col] = static_cast<T>(Drop(p, x, words.word[i]));
  }
}

}  // namespace

TFJOB_KERNEL(Dropout, DropoutParameter, kRandomThreads) {
  const uint32_t block = blockIdx.x * kRandomThreads + threadIdx.x;
  if (block >= (p.count + 3) / 4) return;
  const Words words = Draw(p.words, block, 0);
  WithFloats(p.type, [&](auto zero) { DropBlock<decltype(zero)>(p, words, block); });
}

TFJOB_KERNEL(RandomUniform, RandomUniformParameter, kRandomThreads) {
  const uint32_t block = blockIdx.x * kRandomThreads + threadIdx.x;
  if (block >= (p.count + 3) / 4) return;
  const Words words = Draw(p.words, block, 0);
  if (block * 4 + 4 <= p.count && IsQuad(p.y, p.y_stride, p.cols)) {
    return Store(p.y + block * 4, {UniformOf(p, words.word[0]), UniformOf(p, words.word[1]),
                                   UniformOf(p, words.word[2]), UniformOf(p, words.word[3])});
  }
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t element = block * 4 + i;
    if (element >= p.count) return;
    const uint32_t row = element / p.cols, col = element - row * p.cols;
    p.y[row * p.y_stride + col] = UniformOf(p, words.word[i]);
  }
}

TFJOB_KERNEL(RandomNormal, RandomNormalParameter, kRandomThreads) {
  const uint32_t block = blockIdx.x * kRandomThreads + threadIdx.x;
  if (block >= (p.count + 3) / 4) return;
  const float4 n = NormalsOfBlock(p, block);
  if (block * 4 + 4 <= p.count && IsQuad(p.y, p.y_stride, p.cols)) return Store(p.y + block * 4, n);
  WriteNormal(p, block * 4, n.x);
  WriteNormal(p, block * 4 + 1, n.y);
  WriteNormal(p, block * 4 + 2, n.z);
  WriteNormal(p, block * 4 + 3, n.w);
}

}  // namespace tfjob::kernels::cuda
