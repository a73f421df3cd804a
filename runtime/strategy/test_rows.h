// Provides batches, the values of snapshots, and the norm of their difference, for tests that
// compare strategies.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/model/build.h"
#include "runtime/state/snapshot.h"

namespace tfjob::strategy {

// Returns a batch of the rows [first, first + size) of endless data: features [size, 2] and labels
// [size], float32.
inline data::Batch Rows(int64_t first, int64_t size) {
  Tensor x(DType::kFloat32, {size, 2}), y(DType::kFloat32, {size});
  for (int64_t i = 0; i < size; ++i) {
    const double at = static_cast<double>((first + i) * 37 % 101) / 50 - 1;
    const auto row = static_cast<size_t>(i);
    x.data<float>()[2 * row] = static_cast<float>(at);
    x.data<float>()[2 * row + 1] = static_cast<float>(at * at - 0.3);
    y.data<float>()[row] = static_cast<float>(std::sin(3 * at));
  }
  return {.tensors = {{"features", std::move(x)}, {model::kLabels, std::move(y)}}, .position = {}};
}

// Returns the norm of the difference.
inline double Norm(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

enum class Slots { kWithout, kWith };

// Returns the float32 values of all variables; with Slots::kWith, each is followed by the values of
// its slots.
inline std::vector<float> ValuesOf(const state::Snapshot& snapshot, Slots slots) {
  std::vector<float> values;
  const auto add = [&](const Tensor& tensor) {
    values.insert(values.end(), tensor.data<float>().begin(), tensor.data<float>().end());
  };
  for (const state::VariableState& state : snapshot.variables) {
    add(state.value);
    if (slots == Slots::kWithout) continue;
    for (const Tensor& slot : state.slots) add(slot);
  }
  return values;
}

}  // namespace tfjob::strategy
