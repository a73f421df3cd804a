// Compares recurrent layers and wrappers with plain loops in double precision.
#include "runtime/model/layers/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/model/layers/conv_lstm.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/masking.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/rnn.h"
#include "runtime/model/shape.h"
#include "runtime/model/wrappers.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {
namespace {

constexpr int64_t kSteps = 4, kFeatures = 3, kUnits = 2;
using Row = std::vector<double>;

// Returns whether a step is unmasked. The second half of each odd example is padding.
bool Counts(size_t example, int64_t step) {
  return example % 2 == 0 || step < kSteps / 2;
}

Values Sequences() {
  Values x;
  for (size_t i = 0; i < kBatch * kSteps * kFeatures; ++i)
    x.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i) + 1)));
  return x;
}

Values Padded() {
  Values x = Sequences();
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t row = i / kFeatures;
    if (!Counts(row / kSteps, static_cast<int64_t>(row % kSteps))) x[i] = 0;
  }
  return x;
}

Initializer Uniform(int64_t seed) {
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
    const TensorType in{DType::kFloat32, {kSteps, kFeatures}};
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

double Sigmoid(double z) {
  return 1 / (1 + std::exp(-z));
}

struct State {
  Row h = Row(kUnits), c = Row(kUnits);
};

State LstmStep(const Weights& w, const Row& x, const State& state) {
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

State GruStep(const Weights& w, bool reset_after, const Row& x, const State& state) {
  const auto from_x = [&](int64_t gate, int64_t u) {
    return w.Dot(0, x, gate * kUnits + u) + w.At(2, 0, gate * kUnits + u);
  };
  const auto from_h = [&](int64_t gate, int64_t u, const Row& h) {
    const double bias = reset_after ? w.At(2, 1, gate * kUnits + u) : 0;
    return w.Dot(1, h, gate * kUnits + u) + bias;
  };
  Row reset = state.h, r(kUnits);
  for (int64_t u = 0; u < kUnits; ++u) {
    const auto at = static_cast<size_t>(u);
    r[at] = Sigmoid(from_x(1, u) + from_h(1, u, state.h));
    reset[at] = r[at] * state.h[at];
  }
  State next;
  for (int64_t u = 0; u < kUnits; ++u) {
    const auto at = static_cast<size_t>(u);
    const double z = Sigmoid(from_x(0, u) + from_h(0, u, state.h));
    const double recurrent = reset_after ? r[at] * from_h(2, u, state.h) : from_h(2, u, reset);
    next.h[at] = z * state.h[at] + (1 - z) * std::tanh(from_x(2, u) + recurrent);
  }
  return next;
}

using Cell = std::function<State(const Row& x, const State&)>;

// Runs a cell over the sequences. A masked step preserves the state; its output is the state or, if
// `zero` is true, 0.
Values OutputsOf(const Cell& cell, const Values& x, bool masked, bool backwards,
                 bool zero = false) {
  Values outputs;
  for (size_t example = 0; example < kBatch; ++example) {
    State state;
    for (int64_t t = 0; t < kSteps; ++t) {
      const int64_t step = backwards ? kSteps - 1 - t : t;
      const auto begin = x.begin() + (static_cast<int64_t>(example) * kSteps + step) * kFeatures;
      const bool counts = !masked || Counts(example, step);
      if (counts) state = cell(Row(begin, begin + kFeatures), state);
      for (double h : state.h) outputs.push_back(counts || !zero ? static_cast<float>(h) : 0.0f);
    }
  }
  return outputs;
}

Model Chained(LayerConfig layer, bool masked) {
  LayerConfig between = layers::Rescaling{};
  if (masked) between = layers::Masking{};
  return Sequential(
      "m", {{.name = "steps", .config = layers::Reshape{.target_shape = {kSteps, kFeatures}}},
            {.name = "between", .config = std::move(between)},
            {.name = "layer_2", .config = std::move(layer)}});
}

void ExpectNear(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

template <typename L>
void Check(const L& layer, const Cell& cell) {
  for (const bool masked : {false, true}) {
    for (const bool backwards : {false, true}) {
      L directed = layer;
      directed.arguments.go_backwards = backwards;
      const Values x = masked ? Padded() : Sequences();
      ExpectNear(OneRun(Chained(directed, masked), Mode::kPredict, {x}).Get(kPrediction),
                 OutputsOf(cell, x, masked, backwards));
    }
  }
}

TEST(Recurrent, LstmEqualsPlainLoops) {
  const auto layer = Made<layers::LSTM>();
  const Weights w(layer);
  EXPECT_EQ(w.At(2, 0, kUnits), 1);  // the forget gate's bias
  EXPECT_NE(w.At(2, 0, 0), 1);
  Check(layer, [&](const Row& x, const State& state) { return LstmStep(w, x, state); });
}

TEST(Recurrent, GruEqualsPlainLoops) {
  for (const bool reset_after : {false, true}) {
    auto layer = Made<layers::GRU>();
    layer.arguments.reset_after = reset_after;
    const Weights w(layer);
    Check(layer,
          [&](const Row& x, const State& state) { return GruStep(w, reset_after, x, state); });
  }
}

TEST(Recurrent, SimpleRnnEqualsPlainLoops) {
  const auto layer = Made<layers::SimpleRNN>();
  const Weights w(layer);
  Check(layer, [&](const Row& x, const State& state) {
    State next;
    for (int64_t u = 0; u < kUnits; ++u)
      next.h[static_cast<size_t>(u)] =
          std::tanh(w.Dot(0, x, u) + w.Dot(1, state.h, u) + w.At(2, 0, u));
    return next;
  });
}

TEST(Recurrent, ReturnsTheLastOutputOrAllOfThem) {
  auto layer = Made<layers::LSTM>();
  const Values all = OneRun(Chained(layer, true), Mode::kPredict, {Padded()}).Get(kPrediction);
  layer.arguments.return_sequences = false;
  const Values last = OneRun(Chained(layer, true), Mode::kPredict, {Padded()}).Get(kPrediction);
  for (size_t example = 0; example < kBatch; ++example) {
    for (size_t u = 0; u < kUnits; ++u) {
      EXPECT_EQ(last[example * kUnits + u], all[(example * kSteps + kSteps - 1) * kUnits + u]);
    }
  }
}

TEST(Recurrent, SkippedStepsMayYieldZeros) {
  auto layer = Made<layers::LSTM>();
  layer.arguments.zero_output_for_mask = true;
  const Weights w(layer);
  const Cell cell = [&](const Row& x, const State& state) { return LstmStep(w, x, state); };
  ExpectNear(OneRun(Chained(layer, true), Mode::kPredict, {Padded()}).Get(kPrediction),
             OutputsOf(cell, Padded(), true, false, true));
}

// Dropout must change the training loss differently in each step, but must not change the
// predictions.
TEST(Recurrent, DropsInputsAndStatesOnlyInTraining) {
  const auto plain = Made<layers::GRU>();
  auto dropping = plain;
  dropping.arguments.dropout = 0.5;
  dropping.arguments.recurrent_dropout = 0.5;
  const auto predict = [&](const layers::GRU& layer) {
    return OneRun(Chained(layer, false), Mode::kPredict, {Sequences()}).Get(kPrediction);
  };
  EXPECT_EQ(predict(plain), predict(dropping));
  const auto loss = [&](const layers::GRU& layer, int64_t step) {
    return OneRun(Chained(layer, false), Mode::kTrain, {Sequences()}, step).Get(kLoss)[0];
  };
  EXPECT_NE(loss(plain, 0), loss(dropping, 0));
  EXPECT_NE(loss(dropping, 0), loss(dropping, 1));
}

template <layers::CellKind kKind>
std::shared_ptr<const Layer> CellOf(const std::string& name,
                                    const layers::RecurrentArguments& arguments) {
  return std::make_shared<const Layer>(
      Layer{.name = name, .config = layers::Cell<kKind>{arguments}});
}

TEST(Rnn, OneCellIsTheLayerOfItsKind) {
  for (const bool masked : {false, true}) {
    auto layer = Made<layers::LSTM>();
    layer.arguments.go_backwards = masked;
    const layers::RNN rnn{.cell = CellOf<layers::CellKind::kLSTM>("lstm_cell", layer.arguments),
                          .return_sequences = true,
                          .go_backwards = masked};
    const Values x = masked ? Padded() : Sequences();
    EXPECT_EQ(OneRun(Chained(rnn, masked), Mode::kPredict, {x}).Get(kPrediction),
              OneRun(Chained(layer, masked), Mode::kPredict, {x}).Get(kPrediction));
  }
}

// All elements of a variable have the same value, because random values would depend on the
// variable's name.
TEST(Rnn, StackedCellsAreLayersInAChain) {
  auto first = Made<layers::LSTM>();
  auto second = Made<layers::GRU>();
  const auto fill = [](layers::RecurrentArguments& arguments, double value) {
    const auto constant = [](double number) {
      return Initializer{.kind = Initializer::Kind::kConstant, .value = number};
    };
    arguments.kernel_initializer = constant(value);
    arguments.recurrent_initializer = constant(0.7 * value);
    arguments.bias_initializer = constant(-0.3 * value);
  };
  fill(first.arguments, 0.2);
  fill(second.arguments, -0.4);
  const layers::StackedRNNCells stack{{CellOf<layers::CellKind::kLSTM>("a", first.arguments),
                                       CellOf<layers::CellKind::kGRU>("b", second.arguments)}};
  for (const bool masked : {false, true}) {
    const layers::RNN rnn{
        .cell = std::make_shared<const Layer>(Layer{.name = "stack", .config = stack}),
        .return_sequences = true};
    std::vector<Layer> chain = Chained(first, masked).layers;
    chain.push_back({.name = "layer_3", .config = second});
    const Values x = masked ? Padded() : Sequences();
    EXPECT_EQ(OneRun(Chained(rnn, masked), Mode::kPredict, {x}).Get(kPrediction),
              OneRun(Sequential("m", chain), Mode::kPredict, {x}).Get(kPrediction));
  }
}

TEST(Wrappers, BidirectionalJoinsBothDirections) {
  const layers::Bidirectional both{.layer = std::make_shared<const Layer>(
                                       Layer{.name = "inner", .config = Made<layers::LSTM>()})};
  const Weights w(both);
  const auto cell = [&](size_t first) {
    return [&, first](const Row& x, const State& state) {
      Weights own = w;
      own.tensors.erase(own.tensors.begin(), own.tensors.begin() + static_cast<int64_t>(first));
      return LstmStep(own, x, state);
    };
  };
  for (const bool masked : {false, true}) {
    const Values x = masked ? Padded() : Sequences();
    const Values forward = OutputsOf(cell(0), x, masked, false, true);
    const Values backward = OutputsOf(cell(3), x, masked, true, true);
    const Values got = OneRun(Chained(both, masked), Mode::kPredict, {x}).Get(kPrediction);
    ASSERT_EQ(got.size(), forward.size() + backward.size());
    for (size_t example = 0; example < kBatch; ++example) {
      for (size_t step = 0; step < kSteps; ++step) {
        for (size_t u = 0; u < kUnits; ++u) {
          const size_t row = example * kSteps + step;
          const size_t other = example * kSteps + kSteps - 1 - step;
          EXPECT_NEAR(got[row * 2 * kUnits + u], forward[row * kUnits + u], 1e-5);
          EXPECT_NEAR(got[row * 2 * kUnits + kUnits + u], backward[other * kUnits + u], 1e-5);
        }
      }
    }
  }
}

TEST(Wrappers, TimeDistributedAppliesALayerToEachStep) {
  layers::Dense dense;
  dense.units = kUnits;
  const layers::TimeDistributed steps{
      .layer = std::make_shared<const Layer>(Layer{.name = "inner", .config = dense})};
  const Weights w(steps);
  const Values x = Sequences();
  const Values got = OneRun(Chained(steps, false), Mode::kPredict, {x}).Get(kPrediction);
  ASSERT_EQ(got.size(), x.size() / kFeatures * kUnits);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto row = x.begin() + static_cast<int64_t>(i / kUnits) * kFeatures;
    EXPECT_NEAR(got[i], w.Dot(0, Row(row, row + kFeatures), static_cast<int64_t>(i % kUnits)),
                1e-5);
  }
}

TEST(Wrappers, TimeDistributedBatchNormalizationLearnsFromOneStepAfterAnother) {
  layers::BatchNormalization norm;
  norm.momentum = 0.5;
  const layers::TimeDistributed steps{
      .layer = std::make_shared<const Layer>(Layer{.name = "inner", .config = norm})};
  const Values x = Sequences();
  const Values mean =
      OneRun(Chained(steps, false), Mode::kTrain, {x}).Get("assignments/layer_2/inner/moving_mean");
  for (size_t c = 0; c < kFeatures; ++c) {
    double moving = 0;
    for (size_t step = 0; step < kSteps; ++step) {
      double batch = 0;
      for (size_t example = 0; example < kBatch; ++example)
        batch += x[(example * kSteps + step) * kFeatures + c] / double(kBatch);
      moving = 0.5 * moving + 0.5 * batch;
    }
    EXPECT_NEAR(mean[c], moving, 1e-5);
  }
}

// At each place, the result must be that of an LSTM whose matrix products are replaced with
// convolutions of size 3. Values outside the row are 0.
TEST(Recurrent, ConvLSTMConvolvesInputsAndStates) {
  constexpr int64_t kLength = 5, kFilters = 2, kSize = 3;
  layers::ConvLSTM1D layer;
  layer.filters = kFilters;
  layer.window.size = {kSize};
  layer.window.padding = layers::PaddingKind::kSame;
  layer.kernel_initializer = Uniform(1);
  layer.recurrent_initializer = Uniform(2);
  layer.bias_initializer = Uniform(3);
  layer.unit_forget_bias = false;
  layer.return_sequences = true;
  Values x(static_cast<size_t>(kBatch * kSteps * kLength * kFeatures));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i) + 1));
  const TensorType in{DType::kFloat32, {kSteps, kLength, kFeatures}};
  std::vector<Tensor> weights;
  for (const VariableSpec& spec : layer.Variables({&in, 1}))
    weights.push_back(
        InitialValue(spec.initializer, spec.dtype, spec.shape, 1, StrCat("layer/", spec.name)));
  const auto weight = [&](size_t tensor, int64_t k, int64_t from, int64_t to) -> double {
    const Shape& shape = weights[tensor].shape();
    const int64_t row = tensor == 2 ? 0 : k * shape.dim(-2) + from;
    return weights[tensor].data<float>()[static_cast<size_t>(row * shape.dim(-1) + to)];
  };
  const Model model =
      Sequential("m", {{.name = "rows", .config = layers::Reshape{{kSteps, kLength, kFeatures}}},
                       {.name = "layer", .config = layer}});
  const Values got = OneRun(model, Mode::kPredict, {x}).Get(kPrediction);
  ASSERT_EQ(got.size(), static_cast<size_t>(kBatch * kSteps * kLength * kFilters));
  for (int64_t n = 0; n < kBatch; ++n) {
    std::vector<Row> h(kLength, Row(kFilters)), c = h;
    for (int64_t step = 0; step < kSteps; ++step) {
      const std::vector<Row> last = h;
      for (int64_t at = 0; at < kLength * kFilters; ++at) {
        const int64_t place = at / kFilters, f = at % kFilters;
        const auto z = [&](int64_t gate) {
          const int64_t to = gate * kFilters + f;
          double sum = weight(2, 0, 0, to);
          for (int64_t k = 0; k < kSize; ++k) {
            const int64_t from = place + k - 1;
            if (from < 0 || from >= kLength) continue;
            const int64_t first = ((n * kSteps + step) * kLength + from) * kFeatures;
            for (int64_t i = 0; i < kFeatures; ++i)
              sum += x[static_cast<size_t>(first + i)] * weight(0, k, i, to);
            for (int64_t i = 0; i < kFilters; ++i)
              sum += last[static_cast<size_t>(from)][static_cast<size_t>(i)] * weight(1, k, i, to);
          }
          return sum;
        };
        double& cell = c[static_cast<size_t>(place)][static_cast<size_t>(f)];
        double& state = h[static_cast<size_t>(place)][static_cast<size_t>(f)];
        cell = Sigmoid(z(1)) * cell + Sigmoid(z(0)) * std::tanh(z(2));
        state = Sigmoid(z(3)) * std::tanh(cell);
        const int64_t index = ((n * kSteps + step) * kLength + place) * kFilters + f;
        EXPECT_NEAR(got[static_cast<size_t>(index)], state, 1e-5) << index;
      }
    }
  }
}

}  // namespace
}  // namespace tfjob::model
