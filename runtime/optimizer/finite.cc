#include "runtime/optimizer/finite.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>

namespace tfjob::optimizer {
namespace {

constexpr int64_t kFiniteGrain = 65536;  // number of elements that justifies another thread

template <typename T>
struct BitsOf;
template <>
struct BitsOf<float> {
  using Type = uint32_t;
  static constexpr Type kMagnitude = 0x7fffffff;  // all bits except the sign
  static constexpr Type kInfinity = 0x7f800000;   // the bits of NaNs are above this value
};
template <>
struct BitsOf<double> {
  using Type = uint64_t;
  static constexpr Type kMagnitude = 0x7fffffffffffffff;
  static constexpr Type kInfinity = 0x7ff0000000000000;
};

// Compares the bits as integers. The compiler can vectorise a maximum of integers because, unlike a
// maximum of floating-point numbers, it does not depend on the order.
template <typename T>
bool FiniteRange(const T* values, int64_t count) {
  using Bits = BitsOf<T>;
  typename Bits::Type worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<typename Bits::Type>(values[i]) & Bits::kMagnitude;
    worst = std::max(worst, bits);
  }
  return worst < Bits::kInfinity;
}

template <typename T>
bool FiniteSpan(std::span<const T> values, ThreadPool* pool) {
  const auto count = static_cast<int64_t>(values.size());
  if (pool == nullptr || count < 2 * kFiniteGrain) return FiniteRange(values.data(), count);
  std::atomic<bool> finite{true};
  const auto check = [&](int64_t begin, int64_t end) {
    if (!FiniteRange(values.data() + begin, end - begin)) finite = false;
  };
  pool->ParallelFor(count, kFiniteGrain, std::cref(check));  // by reference, to avoid an allocation
  return finite;
}

}  // namespace

bool AllFinite(std::span<const float> values, ThreadPool* pool) {
  return FiniteSpan(values, pool);
}
bool AllFinite(std::span<const double> values, ThreadPool* pool) {
  return FiniteSpan(values, pool);
}
bool AllFinite(DType dtype, std::span<const std::byte> values, ThreadPool* pool) {
  const size_t count = values.size() / SizeOf(dtype);
  if (dtype == DType::kFloat32)
    return AllFinite(std::span(reinterpret_cast<const float*>(values.data()), count), pool);
  if (dtype == DType::kFloat64)
    return AllFinite(std::span(reinterpret_cast<const double*>(values.data()), count), pool);
  return true;
}

}  // namespace tfjob::optimizer
