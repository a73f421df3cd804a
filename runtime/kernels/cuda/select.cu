// Compares elements, selects elements, and finds the largest elements.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/loops.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

template <typename T>
TFJOB_DEVICE bool Holds(CompareOp op, T a, T b) {
  switch (op) {
    case CompareOp::kEqual:
      return a == b;
    case CompareOp::kGreater:
      return a > b;
    case CompareOp::kGreaterEqual:
      return a >= b;
    case CompareOp::kLess:
      break;
  }
  return a < b;
}

template <typename T>
TFJOB_DEVICE void CompareAs(const CompareParameter& p, const Offsets4& at) {
  p.out[at.c] = Holds(p.op, static_cast<const T*>(p.a)[at.a], static_cast<const T*>(p.b)[at.b]);
}

// Compares elements of a half type.
TFJOB_DEVICE void CompareHalves(const CompareParameter& p, FloatType type, const Offsets4& at) {
  p.out[at.c] = Holds(p.op, ReadFloat(p.a, type, at.a), ReadFloat(p.b, type, at.b));
}

template <typename T>
TFJOB_DEVICE void SelectAs(const SelectParameter& p, const Offsets4& at) {
  const bool first = p.condition[at.a];
  static_cast<T*>(p.out)[at.d] =
      first ? static_cast<const T*>(p.a)[at.b] : static_cast<const T*>(p.b)[at.c];
}

// An element, and its position among the elements that are compared.
struct Candidate {
  float value;
  int64_t index;
};

// Returns the element as a candidate. As on the CPU, a NaN at index 0 is greater than all other
// elements, and a NaN at any other index is greater than none.
TFJOB_DEVICE Candidate CandidateOf(float value, int64_t index) {
  if (value == value) return {value, index};
  return {index == 0 ? INFINITY : -INFINITY, index};
}

// Returns the greater candidate or, if both are equal, the one with the lower index.
TFJOB_DEVICE Candidate Greater(const Candidate& a, const Candidate& b) {
  const bool first = a.value > b.value || (a.value == b.value && a.index < b.index);
  return first ? a : b;
}

}  // namespace

TFJOB_KERNEL(Compare, CompareParameter, kSelectThreads) {
  const uint32_t element = blockIdx.x * kSelectThreads + threadIdx.x;
  if (element >= p.loops.count) return;
  const Offsets4 at = OffsetsOf(p.loops, {p.a_stride, p.b_stride, p.out_stride, nullptr}, element);
  switch (p.type) {
    case CastType::kFloat32:
      return CompareAs<float>(p, at);
    case CastType::kFloat64:
      return CompareAs<double>(p, at);
    case CastType::kInt32:
      return CompareAs<int32_t>(p, at);
    case CastType::kInt64:
      return CompareAs<int64_t>(p, at);
    case CastType::kUInt8:
      return CompareAs<uint8_t>(p, at);
    case CastType::kBool:
      return CompareAs<bool>(p, at);
    case CastType::kBFloat16:
      return CompareHalves(p, FloatType::kBFloat16, at);
    case CastType::kFloat16:
      return CompareHalves(p, FloatType::kFloat16, at);
  }
}

TFJOB_KERNEL(Select, SelectParameter, kSelectThreads) {
  const uint32_t element = blockIdx.x * kSelectThreads + threadIdx.x;
  if (element >= p.loops.count) return;
  const Offsets4 at =
      OffsetsOf(p.loops, {p.condition_stride, p.a_stride, p.b_stride, p.out_stride}, element);
  if (p.bytes == 1) return SelectAs<uint8_t>(p, at);
  if (p.bytes == 2) return SelectAs<uint16_t>(p, at);
  if (p.bytes == 4) return SelectAs<uint32_t>(p, at);
  SelectAs<uint64_t>(p, at);
}

TFJOB_KERNEL(ArgMax, ArgMaxParameter, kArgMaxThreads) {
  const uint32_t element = blockIdx.x * kArgMaxThreads + threadIdx.x;
  if (element >= p.loops.count) return;
  const Offsets4 at = OffsetsOf(p.loops, {p.in_stride, p.out_stride, nullptr, nullptr}, element);
  Candidate best = CandidateOf(ReadFloat(p.in, p.type, at.a), 0);
  for (int64_t i = 1; i < p.count; ++i)
    best = Greater(best, CandidateOf(ReadFloat(p.in, p.type, at.a + i * p.step), i));
  p.out[at.b] = best.index;
}

TFJOB_KERNEL(ArgMaxRows, ArgMaxParameter, kArgMaxThreads) {
  const uint32_t element = blockIdx.x * (kArgMaxThreads / kWarp) + threadIdx.x / kWarp;
  if (element >= p.loops.count) return;  // all lanes of a warp have the same element
  const Offsets4 at = OffsetsOf(p.loops, {p.in_stride, p.out_stride, nullptr, nullptr}, element);
  const int64_t lane = threadIdx.x % kWarp;
  Candidate best{-INFINITY, p.count};
  for (int64_t i = lane; i < p.count; i += kWarp)
    best = Greater(best, CandidateOf(ReadFloat(p.in, p.type, at.a + i * p.step), i));
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Candidate other{__shfl_xor_sync(kAllLanes, best.value, offset),
                          __shfl_xor_sync(kAllLanes, best.index, offset)};
    best = Greater(best, other);
  }
  if (lane == 0) p.out[at.b] = best.index;
}

}  // namespace tfjob::kernels::cuda
