#include "runtime/strategy/scale.h"

#include <cstring>

namespace tfjob::strategy {
namespace {

template <typename T>
void ScaleAs(std::span<const std::byte> from, double weight, std::span<std::byte> to) {
  const auto factor = static_cast<T>(weight);
  if (from.data() == to.data()) {
    T* const values = reinterpret_cast<T*>(to.data());
    for (size_t i = 0; i < to.size() / sizeof(T); ++i) values[i] *= factor;
    return;
  }
  const T* __restrict source = reinterpret_cast<const T*>(from.data());
  T* __restrict target = reinterpret_cast<T*>(to.data());
  for (size_t i = 0; i < to.size() / sizeof(T); ++i) target[i] = source[i] * factor;
}

}  // namespace

void Scale(DType dtype, std::span<const std::byte> from, double weight, std::span<std::byte> to) {
  if (weight == 1) {
    if (to.data() != from.data()) std::memcpy(to.data(), from.data(), to.size());
  } else if (dtype == DType::kFloat64) {
    ScaleAs<double>(from, weight, to);
  } else {
    ScaleAs<float>(from, weight, to);
  }
}

}  // namespace tfjob::strategy
