// Runs programs of elementwise ops. A single op is a program with one step.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/kernels/cuda/random_words.h"

namespace tfjob::kernels::cuda {
namespace {

template <typename F>
TFJOB_DEVICE float4 Each(float4 a, float4 b, float4 c, F f) {
  return {f(a.x, b.x, c.x), f(a.y, b.y, c.y), f(a.z, b.z, c.z), f(a.w, b.w, c.w)};
}

// Returns x/π minus the nearest even number: the position on the circle, from -1 to 1. CUDA's sinf
// and cosf are not used, because they need local memory.
TFJOB_DEVICE float PartOfTurn(float x) {
  constexpr float kHigh = 0.318309873f, kLow = 1.28412765e-8f;  // their sum is 1/π
  const float whole = 2.0f * rintf(0.5f * (x * kHigh));
  return fmaf(x, kHigh, -whole) + x * kLow;
}

// Computes the same functions as cpu/functions.h: Maximum, Minimum and Relu return NaN if an
// operand is NaN.
TFJOB_DEVICE float4 Compute(ElementOp op, float4 a, float4 b, float4 c) {
#define TFJOB_CASE(name, result)                                                                   \
  case ElementOp::name:                                                                            \
    return Each(a, b, c,                                                                           \
                []([[maybe_unused]] float x, [[maybe_unused]] float y, [[maybe_unused]] float z) { \
                  return result;                                                                   \
                })
  switch (op) {
    TFJOB_CASE(kAdd, x + y);
    TFJOB_CASE(kSub, x - y);
    TFJOB_CASE(kMul, x * y);
    TFJOB_CASE(kDiv, x / y);
    TFJOB_CASE(kMaximum, x > y || x != x ? x : y);
    TFJOB_CASE(kMinimum, x < y || x != x ? x : y);
    TFJOB_CASE(kPow, powf(x, y));
    TFJOB_CASE(kNeg, -x);
    TFJOB_CASE(kAbs, fabsf(x));
    TFJOB_CASE(kSquare, x * x);
    TFJOB_CASE(kSqrt, sqrtf(x));
    TFJOB_CASE(kRsqrt, 1.0f / sqrtf(x));
    TFJOB_CASE(kExp, expf(x));
    TFJOB_CASE(kLog, logf(x));
    TFJOB_CASE(kErf, erff(x));
    TFJOB_CASE(kSin, sinpif(PartOfTurn(x)));
    TFJOB_CASE(kCos, cospif(PartOfTurn(x)));
    TFJOB_CASE(kRelu, x < 0.0f ? 0.0f : x);
    TFJOB_CASE(kSigmoid, 1.0f / (1.0f + expf(-x)));
    TFJOB_CASE(kTanh, tanhf(x));
    TFJOB_CASE(kReluGrad, y > 0.0f ? x : 0.0f);
    TFJOB_CASE(kSigmoidGrad, y * x * (1.0f - x));
    TFJOB_CASE(kTanhGrad, y * (1.0f - x * x));
    TFJOB_CASE(kClip, (x < y ? y : x) > z ? z : (x < y ? y : x));
    case ElementOp::kCopy:
    case ElementOp::kDropout:  // see Drop
      break;
  }
#undef TFJOB_CASE
  return a;
}

struct Position {
  uint32_t row, col;
  bool inside;  // there is such an element
};
// The four elements of a thread. If `quad` is set, they are consecutive, and `x` is the first.
struct Positions {
  Position x, y, z, w;
  bool quad;
};

TFJOB_DEVICE Position PositionOf(const ElementwiseParameter& p, uint32_t element) {
  const uint32_t row = element / p.cols;
  return {row, element - row * p.cols, element < p.count};
}

TFJOB_DEVICE Positions PositionsOfThread(const ElementwiseParameter& p) {
  const bool vectors = p.vectors != 0;
  const uint32_t step = vectors ? 1 : kElementThreads;
  const uint32_t first = blockIdx.x * kElementsPerBlock + (vectors ? 4 * threadIdx.x : threadIdx.x);
  Positions at{PositionOf(p, first), {}, {}, {}, vectors && first + 4 <= p.count};
  if (at.quad) return at;
  at.y = PositionOf(p, first + step);
  at.z = PositionOf(p, first + 2 * step);
  at.w = PositionOf(p, first + 3 * step);
  return at;
}

template <typename T>
TFJOB_DEVICE float Read(const ElementInput& input, Position at) {
  if (!at.inside) return 0.0f;
  return static_cast<float>(static_cast<const T*>(
      input.data)[at.row * input.row_stride + static_cast<int64_t>(at.col) * input.column_step]);
}

template <typename T>
TFJOB_DEVICE float4 Read(const ElementInput& input, const Positions& at) {
  if (!at.quad)
    return {Read<T>(input, at.x), Read<T>(input, at.y), Read<T>(input, at.z), Read<T>(input, at.w)};
  if (input.column_step == 1)
    return Load(static_cast<const T*>(input.data) + at.x.row * input.row_stride + at.x.col);
  const float value = Read<T>(input, at.x);
  return {value, value, value, value};
}

TFJOB_DEVICE float4 Read(const ElementInput& input, const Positions& at) {
  if (input.type == FloatType::kFloat32) return Read<float>(input, at);
  if (input.type == FloatType::kBFloat16) return Read<BFloat16>(input, at);
  return Read<Float16>(input, at);
}

TFJOB_DEVICE float* Slot(float* slots, int index) {
  return slots + (index * kElementThreads + static_cast<int>(threadIdx.x)) * 4;
}

TFJOB_DEVICE float4 Operand(const ElementwiseParameter& p, const ElementSource& source,
                            float* slots, float4 last, const Positions& at) {
  switch (source.kind) {
    case ElementSource::kLiteral:
      return {source.literal, source.literal, source.literal, source.literal};
    case ElementSource::kInput:
      return Read(p.input[source.index], at);
    case ElementSource::kSlot:
      return Load(Slot(slots, source.index));
    case ElementSource::kLast:
      break;
  }
  return last;
}

TFJOB_DEVICE void Write(const ElementwiseParameter& p, Position at, float value) {
  if (at.inside) WriteFloat(p.out, p.out_type, at.row * p.out_stride + at.col, value);
}

TFJOB_DEVICE float Keep(const ElementStep& step, float x, uint32_t word) {
  return word >= static_cast<uint32_t>(step.source[2].index) ? x * step.source[1].literal : 0.0f;
}

TFJOB_DEVICE uint32_t ElementAt(const ElementwiseParameter& p, Position at) {
  return at.row * p.cols + at.col;
}

TFJOB_DEVICE float DropOne(const ElementwiseParameter& p, const ElementStep& step,
                           const RandomWords& source, float x, Position at) {
  const uint32_t element = ElementAt(p, at), i = element % 4;
  const Words words = Draw(source, element / 4, 0);
  // An index that is not constant would move the words to local memory.
  const uint32_t low = i == 0 ? words.word[0] : words.word[1];
  const uint32_t high = i == 2 ? words.word[2] : words.word[3];
  return Keep(step, x, i < 2 ? low : high);
}

// Computes kDropout. Four consecutive elements share a block of words.
TFJOB_DEVICE float4 Drop(const ElementwiseParameter& p, const ElementStep& step, float4 x,
                         const Positions& at) {
  RandomWords source = p.words;
  source.op_id = static_cast<uint32_t>(step.source[1].index);
  if (at.quad) {
    const Words words = Draw(source, ElementAt(p, at.x) / 4, 0);
    return {Keep(step, x.x, words.word[0]), Keep(step, x.y, words.word[1]),
            Keep(step, x.z, words.word[2]), Keep(step, x.w, words.word[3])};
  }
  return {DropOne(p, step, source, x.x, at.x), DropOne(p, step, source, x.y, at.y),
          DropOne(p, step, source, x.z, at.z), DropOne(p, step, source, x.w, at.w)};
}

template <bool kRandom>
TFJOB_DEVICE void RunSteps(const ElementwiseParameter& p, float* slots) {
  if (Refused(p.refusal)) return;
  const Positions at = PositionsOfThread(p);
  if (!at.x.inside) return;
  float4 last{};
  for (int i = 0; i < p.steps; ++i) {
    const ElementStep& step = p.step[i];
    if (kRandom && step.op == ElementOp::kDropout) {
      last = Drop(p, step, Operand(p, step.source[0], slots, last, at), at);
      if (step.keep >= 0) Store(Slot(slots, step.keep), last);
      continue;
    }
    last = Compute(step.op, Operand(p, step.source[0], slots, last, at),
                   Operand(p, step.source[1], slots, last, at),
                   Operand(p, step.source[2], slots, last, at));
    if (step.keep >= 0) Store(Slot(slots, step.keep), last);
  }
  if (at.quad) return WriteQuad(p.out, p.out_type, at.x.row * p.out_stride + at.x.col, last);
  Write(p, at.x, last.x);
  Write(p, at.y, last.y);
  Write(p, at.z, last.z);
  Write(p, at.w, last.w);
}

}  // namespace

// Runs programs without slots. Their blocks need no shared memory, so more blocks can run at the
// same time.
TFJOB_KERNEL(Elementwise, ElementwiseParameter, kElementThreads) {
  RunSteps<false>(p, nullptr);
}

TFJOB_KERNEL(ElementwiseWithSlots, ElementwiseParameter, kElementThreads) {
  alignas(16) __shared__ float slots[kElementSlots * kElementThreads * 4];
  RunSteps<false>(p, slots);
}

TFJOB_KERNEL(ElementwiseWithDropout, ElementwiseParameter, kElementThreads) {
  alignas(16) __shared__ float slots[kElementSlots * kElementThreads * 4];
  RunSteps<true>(p, slots);
}

}  // namespace tfjob::kernels::cuda
