// Multiplies contributions by the weight of a rank. Private to this package.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "runtime/collectives/communicator.h"

namespace tfjob::strategy {

template <typename T>
void ScaleAs(std::span<const std::byte> from, double weight, std::span<std::byte> to) {
  const auto factor = static_cast<T>(weight);
  const auto* source = reinterpret_cast<const T*>(from.data());
  auto* target = reinterpret_cast<T*>(to.data());
  for (size_t i = 0; i < to.size() / sizeof(T); ++i) target[i] = source[i] * factor;
}

// Sets each element of `to` to the corresponding element of `from` times `weight`. The spans have
// equal sizes, do not overlap, and are aligned to their elements, which are float32 or float64.
inline void Scale(DType dtype, std::span<const std::byte> from, double weight,
                  std::span<std::byte> to) {
  if (weight == 1) {
    std::memcpy(to.data(), from.data(), to.size());
  } else if (dtype == DType::kFloat64) {
    ScaleAs<double>(from, weight, to);
  } else {
    ScaleAs<float>(from, weight, to);
  }
}

}  // namespace tfjob::strategy
