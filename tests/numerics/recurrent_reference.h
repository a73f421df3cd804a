// Sequences, cells with random variables, and plain loops in double precision, for tests of
// recurrent layers and of wrappers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/model/layers/masking.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/layers/recurrent.h"
#include "runtime/model/rnn.h"
#include "runtime/model/shape.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {

inline constexpr int64_t kSteps = 4, kWidth = 3, kUnits = 2;
using Row = std::vector<double>;

// Returns whether a step is unmasked. The second half of each odd example is padding.
inline bool Counts(size_t example, int64_t step) {
  return example % 2 == 0 || step < kSteps / 2;
}

inline Values Sequences() {
  Values x;
  for (size_t i = 0; i < kBatch * kSteps * kWidth; ++i)
    x.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i) + 1)));
  return x;
}

inline Values Padded() {
  Values x = Sequences();
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t row = i / kWidth;
    if (!Counts(row / kSteps, static_cast<int64_t>(row % kSteps))) x[i] = 0;
  }
  return x;
}

inline Initializer Uniform(int64_t seed) {
  return {.kind = Initializer::Kind::kRandomUniform, .minval = -1, .maxval = 1, .seed = seed};
}

// Returns a layer with random variables.
template <typename L>
L Made() {
  L layer;
  layer.arguments.units = kUnits;
  layer.arguments.kernel_initializer = Uniform(1);
  layer.arguments.recurrent_initializer = Uniform(2);
  layer.arguments.bias_initializer = Uniform(3);
  layer.arguments.return_sequences = true;
  return layer;
}

// Contains the variables of a layer, with their values in OneRun.
struct Weights {
  template <typename L>
  explicit Weights(const L& layer, const std::string& name = "layer_2") {
    const TensorType in{DType::kFloat32, {kSteps, kWidth}};
    for (const VariableSpec& spec : layer.Variables({&in, 1})) {
      tensors.push_back(
          InitialValue(spec.initializer, spec.dtype, spec.shape, 1, name + "/" + spec.name));
    }
  }
  double At(size_t tensor, int64_t row, int64_t column) const {
    const Tensor& t = tensors[tensor];
    return t.data<float>()[static_cast<size_t>(row * t.shape().dim(-1) + column)];
  }
  // Returns the scalar product of a row vector and a column of a matrix.
  double Dot(size_t tensor, const Row& row, int64_t column) const {
    double sum = 0;
    for (size_t i = 0; i < row.size(); ++i)
      sum += row[i] * At(tensor, static_cast<int64_t>(i), column);
    return sum;
  }
  std::vector<Tensor> tensors;  // kernel, recurrent_kernel, bias
};

inline double Sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}

struct State {
  Row h = Row(kUnits), c = Row(kUnits);
};

inline State LstmStep(const Weights& w, const Row& x, const State& state) {
  State next;
  for (int64_t u = 0; u < kUnits; ++u) {
    const auto z = [&](int64_t gate) {
      const int64_t column = gate * kUnits + u;
      return w.Dot(0, x, column) + w.Dot(1, state.h, column) + w.At(2, 0, column);
    };
    const auto at = static_cast<size_t>(u);
    next.c[at] = Sigmoid(z(1)) * state.c[at] + Sigmoid(z(0)) * std::tanh(z(2));
    next.h[at] = Sigmoid(z(3)) * std::tanh(next.c[at]);
  }
  return next;
}

using Cell = std::function<State(const Row& x, const State&)>;

// Runs a cell over the sequences. A masked step preserves the state; its output is the state or, if
// `zero` is true, 0.
inline Values OutputsOf(const Cell& cell, const Values& x, bool masked, bool backwards,
                        bool zero = false) {
  Values outputs;
  for (size_t example = 0; example < kBatch; ++example) {
    State state;
    for (int64_t t = 0; t < kSteps; ++t) {
      const int64_t step = backwards ? kSteps - 1 - t : t;
      const auto begin = x.begin() + (static_cast<int64_t>(example) * kSteps + step) * kWidth;
      const bool counts = !masked || Counts(example, step);
      if (counts) state = cell(Row(begin, begin + kWidth), state);
      for (double h : state.h) outputs.push_back(counts || !zero ? static_cast<float>(h) : 0.0f);
    }
  }
  return outputs;
}

inline Model Chained(LayerConfig layer, bool masked) {
  LayerConfig between = layers::Rescaling{};
  if (masked) between = layers::Masking{};
  return Sequential("m",
                    {{.name = "steps", .config = layers::Reshape{.target_shape = {kSteps, kWidth}}},
                     {.name = "between", .config = std::move(between)},
                     {.name = "layer_2", .config = std::move(layer)}});
}

inline void ExpectNear(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

template <layers::CellKind kKind>
std::shared_ptr<const Layer> CellOf(const std::string& name,
                                    const layers::RecurrentArguments& arguments) {
  return std::make_shared<const Layer>(
      Layer{.name = name, .config = layers::Cell<kKind>{arguments}});
}

// Sets each variable to one value, because random values would depend on the variable's name.
inline void FillVariables(layers::RecurrentArguments& arguments, double value) {
  const auto constant = [](double number) {
    return Initializer{.kind = Initializer::Kind::kConstant, .value = number};
  };
  arguments.kernel_initializer = constant(value);
  arguments.recurrent_initializer = constant(0.7 * value);
  arguments.bias_initializer = constant(-0.3 * value);
}

inline std::shared_ptr<const Layer> Shared(const std::string& name, LayerConfig config) {
  return std::make_shared<const Layer>(Layer{.name = name, .config = std::move(config)});
}

}  // namespace tfjob::model
