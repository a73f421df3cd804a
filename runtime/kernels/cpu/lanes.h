// Reduces contiguous elements to kLanes partial results, and then combines these results. The
// compiler can keep the partial results in vector registers without reordering the arithmetic. The
// result does not depend on the number of threads.
#pragma once

#include <cstdint>

namespace tfjob::kernels::cpu {

inline constexpr int64_t kLanes = 16;

// Combines the partial results of all lanes.
template <typename T, typename Combine>
inline T CombineLanes(T* lanes, const Combine& combine) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) {
      lanes[lane] = combine(lanes[lane], lanes[lane + half]);
    }
  }
  return lanes[0];
}

// Combines map(x[i]) for all i. `start` must be the identity element of `combine`.
template <typename T, typename Combine, typename MapElement>
inline T ReduceLanes(int64_t count, const T* x, T start, const Combine& combine,
                     const MapElement& map) {
  T lanes[kLanes];
  for (T& lane : lanes) lane = start;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = combine(lanes[lane], map(x[i + lane]));
    }
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] = combine(lanes[lane], map(x[i]));
  return CombineLanes(lanes, combine);
}

// Returns Σ x[i]·y[i].
template <typename T>
inline T ReduceProducts(int64_t count, const T* x, const T* y) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane] * y[i + lane];
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += x[i] * y[i];
  return CombineLanes(lanes, [](T a, T b) { return a + b; });
}

}  // namespace tfjob::kernels::cpu
