// Compares layers that wrap other layers with plain loops in double precision, and with the layers
// that they wrap.
#include "runtime/model/wrappers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/model/layers/activity_regularization.h"
#include "runtime/model/layers/conv_lstm.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/noise.h"
#include "runtime/model/nested_model.h"
#include "tests/numerics/recurrent_reference.h"

namespace tfjob::model {
namespace {

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

// Each direction must equal the RNN itself, which may run backwards.
TEST(Wrappers, BidirectionalRunsStackedCells) {
  auto first = Made<layers::LSTM>();
  auto second = Made<layers::GRU>();
  FillVariables(first.arguments, 0.2);
  FillVariables(second.arguments, -0.4);
  const layers::StackedRNNCells stack{{CellOf<layers::CellKind::kLSTM>("a", first.arguments),
                                       CellOf<layers::CellKind::kGRU>("b", second.arguments)}};
  layers::RNN rnn{.cell = Shared("stack", stack), .return_sequences = true};
  const layers::Bidirectional both{.layer = Shared("inner", rnn)};
  rnn.zero_output_for_mask = true;  // as in each direction
  for (const bool masked : {false, true}) {
    const Values x = masked ? Padded() : Sequences();
    const auto run = [&](const LayerConfig& layer) {
      return OneRun(Chained(layer, masked), Mode::kPredict, {x}).Get(kPrediction);
    };
    const Values got = run(both);
    rnn.go_backwards = false;
    const Values forward = run(rnn);
    rnn.go_backwards = true;
    const Values backward = run(rnn);
    ASSERT_EQ(got.size(), forward.size() + backward.size());
    for (size_t row = 0; row < kBatch * kSteps; ++row) {
      const size_t other = row / kSteps * kSteps + kSteps - 1 - row % kSteps;
      for (size_t u = 0; u < kUnits; ++u) {
        EXPECT_EQ(got[row * 2 * kUnits + u], forward[row * kUnits + u]);
        EXPECT_EQ(got[row * 2 * kUnits + kUnits + u], backward[other * kUnits + u]);
      }
    }
  }
}

TEST(Wrappers, BidirectionalNeedsOutputsThatFit) {
  layers::ConvLSTM1D rows;
  rows.filters = 2;
  rows.window.size = {2};
  layers::ConvLSTM1D narrow = rows;
  narrow.window.size = {3};
  narrow.go_backwards = true;
  const layers::Bidirectional both{.layer = Shared("wide", rows),
                                   .backward_layer = Shared("narrow", narrow)};
  const TensorType in{DType::kFloat32, {kSteps, 5, kWidth}};
  EXPECT_EQ(Message(both.OutputTypes({&in, 1}).status()),
            "merge_mode concat needs layers whose outputs have shapes that differ only in the last "
            "axis, got float32[4,2] and float32[3,2]");
  const layers::Bidirectional dense{.layer = Shared("d", layers::Dense{})};
  EXPECT_EQ(Message(dense.OutputTypes({&in, 1}).status()),
            "expected a recurrent layer to wrap (SimpleRNN, LSTM, GRU, RNN, ConvLSTM1D, ConvLSTM2D "
            "or ConvLSTM3D), got layer d (Dense)");
}

TEST(Wrappers, TimeDistributedAppliesALayerToEachStep) {
  layers::Dense dense;
  dense.units = kUnits;
  const layers::TimeDistributed steps{
      .layer = std::make_shared<const Layer>(Layer{.name = "inner", .config = dense})};
  const Weights w(steps);
  const Values x = Sequences();
  const Values got = OneRun(Chained(steps, false), Mode::kPredict, {x}).Get(kPrediction);
  ASSERT_EQ(got.size(), x.size() / kWidth * kUnits);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto row = x.begin() + static_cast<int64_t>(i / kUnits) * kWidth;
    EXPECT_NEAR(got[i], w.Dot(0, Row(row, row + kWidth), static_cast<int64_t>(i % kUnits)), 1e-5);
  }
}

LayerConfig Nested(std::vector<Layer> inner) {
  return NestedModel{std::make_shared<const Model>(Sequential("nested", std::move(inner)))};
}

// The BatchNormalization is the layer itself, or in a nested model, which may be in a wrapper of
// its own.
TEST(Wrappers, TimeDistributedBatchNormalizationLearnsFromOneStepAfterAnother) {
  layers::BatchNormalization norm;
  norm.momentum = 0.5;
  const LayerConfig nested = Nested({{.name = "norm", .config = norm}});
  const LayerConfig deep =
      Nested({{.name = "pair", .config = layers::Reshape{{1, kWidth}}},
              {.name = "each", .config = layers::TimeDistributed{Shared("model", nested)}}});
  const std::pair<LayerConfig, std::string> cases[] = {
      {norm, "inner"}, {nested, "inner/norm"}, {deep, "inner/each/model/norm"}};
  const Values x = Sequences();
  for (const auto& [layer, name] : cases) {
    const layers::TimeDistributed steps{Shared("inner", layer)};
    const Values mean = OneRun(Chained(steps, false), Mode::kTrain, {x})
                            .Get(StrCat("assignments/layer_2/", name, "/moving_mean"));
    for (size_t c = 0; c < kWidth; ++c) {
      double moving = 0;
      for (size_t step = 0; step < kSteps; ++step) {
        double batch = 0;
        for (size_t example = 0; example < kBatch; ++example)
          batch += x[(example * kSteps + step) * kWidth + c] / double(kBatch);
        moving = 0.5 * moving + 0.5 * batch;
      }
      EXPECT_NEAR(mean[c], moving, 1e-5) << name;
    }
  }
}

TEST(Wrappers, TimeDistributedBatchNormalizationTakesAnyNumberOfSteps) {
  constexpr int64_t kMany = 1500;
  const Model model = Sequential(
      "m", {{.name = "steps", .config = layers::Reshape{{kMany, 1}}},
            {.name = "each",
             .config = layers::TimeDistributed{Shared("norm", layers::BatchNormalization{})}}});
  const Values x(static_cast<size_t>(kBatch * kMany), 3);
  const Values mean = OneRun(model, Mode::kTrain, {x}).Get("assignments/each/norm/moving_mean");
  EXPECT_NEAR(mean[0], 3, 1e-4);
}

// The mean of a batch of ones after dropout is a multiple of a third. If all steps dropped the same
// elements, the moving mean would be such a multiple, too.
TEST(Wrappers, TimeDistributedDropsOtherElementsInEachStep) {
  layers::BatchNormalization norm;
  norm.momentum = 0.5;
  const layers::TimeDistributed steps{
      Shared("inner", Nested({{.name = "dropout", .config = layers::Dropout{.rate = 0.5}},
                              {.name = "norm", .config = norm}}))};
  const Values x(static_cast<size_t>(kBatch * kSteps * kWidth), 1);
  const auto mean_at = [&](int64_t step) {
    Values mean = OneRun(Chained(steps, false), Mode::kTrain, {x}, step)
                      .Get("assignments/layer_2/inner/norm/moving_mean");
    for (float& value : mean) value /= 1 - std::pow(0.5F, static_cast<float>(kSteps));
    return mean;
  };
  int differ = 0;
  for (const float value : mean_at(0)) differ += std::abs(std::remainder(value, 1 / 3.0)) > 1e-4;
  EXPECT_GT(differ, 0);
  EXPECT_NE(mean_at(0), mean_at(1));
}

// The penalties of all steps are added up, as in Keras.
TEST(Wrappers, TimeDistributedAddsPenaltiesOfNestedModels) {
  const auto loss = [](double l1, Mode mode) {
    layers::Dense dense;
    dense.units = 1;
    const layers::TimeDistributed steps{
        Shared("inner", Nested({{.name = "penalty", .config = layers::ActivityRegularization{l1}},
                                {.name = "dense", .config = dense}}))};
    return OneRun(Chained(steps, false), mode, {Sequences()}).Get(kLoss)[0];
  };
  double penalty = 0;
  for (const float value : Sequences()) penalty += 0.01 * std::abs(value) / double(kBatch);
  for (const Mode mode : {Mode::kTrain, Mode::kEval})
    EXPECT_NEAR(loss(0.01, mode) - loss(0, mode), penalty, 1e-5);
}

}  // namespace
}  // namespace tfjob::model
