// Compares recurrent layers with plain loops in double precision.
#include "runtime/model/layers/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/model/layers/conv_lstm.h"
#include "runtime/model/wrappers.h"
#include "tests/numerics/recurrent_reference.h"

namespace tfjob::model {
namespace {

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

TEST(Rnn, StackedCellsAreLayersInAChain) {
  auto first = Made<layers::LSTM>();
  auto second = Made<layers::GRU>();
  FillVariables(first.arguments, 0.2);
  FillVariables(second.arguments, -0.4);
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

// A layer whose kernel has size 1 along all axes but one computes the same along each of the axes.
TEST(Recurrent, ConvLSTM3DConvolvesAlongEachAxis) {
  constexpr int64_t kLength = 5;
  const auto run = [](auto layer, std::vector<int64_t> size, std::vector<int64_t> shape) {
    layer.filters = 2;
    layer.window.size = std::move(size);
    layer.window.padding = layers::PaddingKind::kSame;
    layer.kernel_initializer = Uniform(1);
    layer.recurrent_initializer = Uniform(2);
    layer.bias_initializer = Uniform(3);
    layer.return_sequences = true;
    shape.insert(shape.begin(), kSteps);
    shape.push_back(kWidth);
    Values x(static_cast<size_t>(kBatch * Shape(shape).num_elements()));
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i) + 1));
    const Model model = Sequential("m", {{.name = "shape", .config = layers::Reshape{shape}},
                                         {.name = "layer", .config = layer}});
    return OneRun(model, Mode::kPredict, {x}).Get(kPrediction);
  };
  const Values rows = run(layers::ConvLSTM1D{}, {3}, {kLength});
  ExpectNear(run(layers::ConvLSTM3D{}, {3, 1, 1}, {kLength, 1, 1}), rows);
  ExpectNear(run(layers::ConvLSTM3D{}, {1, 3, 1}, {1, kLength, 1}), rows);
  ExpectNear(run(layers::ConvLSTM3D{}, {1, 1, 3}, {1, 1, kLength}), rows);
}

// With rows of length 1 and a kernel of size 1, the layer is an LSTM.
TEST(Recurrent, ConvLSTMSkipsMaskedSteps) {
  auto lstm = Made<layers::LSTM>();
  FillVariables(lstm.arguments, 0.2);
  layers::ConvLSTM1D conv;
  conv.filters = kUnits;
  conv.window.size = {1};
  conv.kernel_initializer = lstm.arguments.kernel_initializer;
  conv.recurrent_initializer = lstm.arguments.recurrent_initializer;
  conv.bias_initializer = lstm.arguments.bias_initializer;
  for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {
    conv.return_sequences = lstm.arguments.return_sequences = (flags & 1) != 0;
    conv.zero_output_for_mask = lstm.arguments.zero_output_for_mask = (flags & 2) != 0;
    conv.go_backwards = lstm.arguments.go_backwards = (flags & 4) != 0;
    std::vector<Layer> rows = Chained(conv, true).layers;
    const layers::TimeDistributed each{Shared("row", layers::Reshape{{1, kWidth}})};
    rows.insert(rows.begin() + 2, {.name = "rows", .config = each});
    ExpectNear(OneRun(Sequential("m", rows), Mode::kPredict, {Padded()}).Get(kPrediction),
               OneRun(Chained(lstm, true), Mode::kPredict, {Padded()}).Get(kPrediction));
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
  Values x(static_cast<size_t>(kBatch * kSteps * kLength * kWidth));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i) + 1));
  const TensorType in{DType::kFloat32, {kSteps, kLength, kWidth}};
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
      Sequential("m", {{.name = "rows", .config = layers::Reshape{{kSteps, kLength, kWidth}}},
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
            const int64_t first = ((n * kSteps + step) * kLength + from) * kWidth;
            for (int64_t i = 0; i < kWidth; ++i)
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
