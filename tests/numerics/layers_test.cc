// Compares layers with plain loops in double precision, in training and in evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "runtime/model/layers/activations.h"
#include "runtime/model/layers/merge.h"
#include "runtime/model/layers/noise.h"
#include "runtime/model/layers/normalization.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {
namespace {

constexpr int64_t kColumns = 3;

// Returns a model with a single layer that has several inputs.
Model Merging(LayerConfig config, int inputs) {
  Model model = Sequential("m", {{.name = "merged", .config = std::move(config)}});
  model.layers.push_back({.name = "identity", .config = layers::Rescaling{}});
  model.calls.clear();
  model.inputs.clear();
  Call merge{.layer = 0};
  for (int i = 0; i < inputs; ++i) {
    model.layers.push_back({.name = StrCat("in_", i), .config = layers::Rescaling{}});
    model.calls.push_back({.layer = 1 + i});
    model.inputs.push_back(i);
    merge.inputs.push_back({i, 0});
  }
  model.calls.push_back(std::move(merge));
  model.outputs = {{inputs, 0}};
  return model;
}

Values Waves(double scale, size_t count = kBatch * kColumns) {
  Values values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(std::sin(scale * static_cast<double>(i) + 1) * scale);
  return values;
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments MomentsOf(const Values& x, size_t first, size_t stride, size_t count) {
  Moments moments;
  for (size_t i = 0; i < count; ++i) moments.mean += x[first + i * stride] / double(count);
  for (size_t i = 0; i < count; ++i)
    moments.variance += std::pow(x[first + i * stride] - moments.mean, 2) / double(count);
  return moments;
}

TEST(LayerNumerics, BatchNormalizationUsesTheBatchInTrainingAndTheMovingStatisticsOtherwise) {
  const Values x = Waves(2);
  layers::BatchNormalization layer;
  layer.momentum = 0.75;
  const Initializer shifted{.kind = Initializer::Kind::kConstant, .value = 0.5};
  layer.moving_mean_initializer = shifted;
  layer.beta_initializer = shifted;
  const OneRun training(Chain(layer), Mode::kTrain, {x});
  const OneRun evaluation(Chain(layer), Mode::kEval, {x});
  const Values mean = training.Get("assignments/layer/moving_mean");
  const Values variance = training.Get("assignments/layer/moving_variance");
  const Values y = evaluation.Get(kPrediction);
  double loss = 0;
  for (size_t c = 0; c < kColumns; ++c) {
    const Moments batch = MomentsOf(x, c, kColumns, kBatch);
    EXPECT_NEAR(mean[c], 0.75 * 0.5 + 0.25 * batch.mean, 1e-6);
    EXPECT_NEAR(variance[c], 0.75 + 0.25 * batch.variance, 1e-6);
    for (size_t i = c; i < x.size(); i += kColumns) {
      EXPECT_NEAR(y[i], (x[i] - 0.5) / std::sqrt(1 + 1e-3) + 0.5, 1e-5);
      const double normal = (x[i] - batch.mean) / std::sqrt(batch.variance + 1e-3) + 0.5;
      loss += normal * normal / (kBatch * kColumns);
    }
  }
  EXPECT_NEAR(training.Get(kLoss)[0], loss, 1e-5);
}

TEST(LayerNumerics, LayerNormalizationNormalisesEachExample) {
  const Values x = Waves(3);
  const Values y =
      OneRun(Chain(layers::LayerNormalization{}), Mode::kPredict, {x}).Get(kPrediction);
  for (size_t row = 0; row < kBatch; ++row) {
    const Moments own = MomentsOf(x, row * kColumns, 1, kColumns);
    for (size_t c = 0; c < kColumns; ++c) {
      const size_t i = row * kColumns + c;
      EXPECT_NEAR(y[i], (x[i] - own.mean) / std::sqrt(own.variance + 1e-3), 1e-5);
    }
  }
}

TEST(LayerNumerics, MergesCombineElementByElementAndBroadcast) {
  const Values x = Waves(1), y = Waves(2), column = Waves(3, kBatch);
  const std::tuple<LayerConfig, std::function<double(double, double, double)>> kCases[] = {
      {layers::Add{}, [](double a, double b, double c) { return a + b + c; }},
      {layers::Multiply{}, [](double a, double b, double c) { return a * b * c; }},
      {layers::Average{}, [](double a, double b, double c) { return (a + b + c) / 3; }},
      {layers::Maximum{}, [](double a, double b, double c) { return std::max({a, b, c}); }},
      {layers::Minimum{}, [](double a, double b, double c) { return std::min({a, b, c}); }},
  };
  for (const auto& [layer, reference] : kCases) {
    const Values got = OneRun(Merging(layer, 3), Mode::kPredict, {x, y, column}).Get(kPrediction);
    ASSERT_EQ(got.size(), x.size()) << layer.class_name();
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(got[i], reference(x[i], y[i], column[i / kColumns]), 1e-5) << layer.class_name();
  }
  const Values difference =
      OneRun(Merging(layers::Subtract{}, 2), Mode::kPredict, {x, y}).Get(kPrediction);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(difference[i], x[i] - y[i], 1e-6);
}

TEST(LayerNumerics, SoftmaxLeavesOutWhatTheMaskHides) {
  const Values x = Waves(1);
  Values mask(x.size());
  for (size_t i = kColumns; i < mask.size(); ++i) mask[i] = i % 4 == 0 ? 0.5f : 1.0f;
  layers::Softmax masked;
  masked.mask = 1;
  const Values got = OneRun(Merging(masked, 2), Mode::kPredict, {x, mask}).Get(kPrediction);
  for (size_t row = 0; row < kBatch; ++row) {
    double sum = 0;
    const auto kept = [&](size_t i) { return mask[i] > 0.5 ? std::exp(double(x[i])) : 0; };
    for (size_t c = 0; c < kColumns; ++c) sum += kept(row * kColumns + c);
    for (size_t i = row * kColumns; i < (row + 1) * kColumns; ++i)
      EXPECT_NEAR(got[i], sum == 0 ? 0 : kept(i) / sum, 1e-6);
  }
}

// Checks that noise has the expected mean and variance over many training steps, differs between
// steps, and is absent from predictions.
TEST(LayerNumerics, NoiseHasItsMeanAndItsSpread) {
  const Values ones(kBatch * kColumns, 1.0f);
  const std::pair<LayerConfig, double> kCases[] = {
      {layers::GaussianNoise{.stddev = 0.5}, 0.25},
      {layers::GaussianDropout{.rate = 0.2}, 0.2 / 0.8},
  };
  for (const auto& [layer, variance] : kCases) {
    // Scale the noise by a trainable weight of 1, because training requires a variable.
    const Model model =
        Sequential("m", {{.name = "noise", .config = layer},
                         {.name = "scale", .config = layers::LayerNormalization{.axis = {-1}}}});
    EXPECT_NE(OneRun(model, Mode::kTrain, {ones}, 1).Get(kLoss),
              OneRun(model, Mode::kTrain, {ones}, 2).Get(kLoss));
    const Values plain = OneRun(Chain(layer), Mode::kPredict, {ones}).Get(kPrediction);
    EXPECT_EQ(plain, ones) << layer.class_name();
    // Observe the noise with a BatchNormalization whose moving statistics are set to those of the
    // batch.
    layers::BatchNormalization watch;
    watch.momentum = 0;
    const Model watched =
        Sequential("m", {{.name = "noise", .config = layer}, {.name = "watch", .config = watch}});
    double mean = 0, square = 0;
    constexpr int kSteps = 400;
    for (int step = 0; step < kSteps; ++step) {
      const OneRun run(watched, Mode::kTrain, {ones}, step);
      const Values means = run.Get("assignments/watch/moving_mean");
      const Values variances = run.Get("assignments/watch/moving_variance");
      for (size_t c = 0; c < kColumns; ++c) {
        mean += means[c] / (kSteps * kColumns);
        square += (variances[c] + (means[c] - 1) * (means[c] - 1)) / (kSteps * kColumns);
      }
    }
    EXPECT_NEAR(mean, 1, 5 * std::sqrt(variance / (kSteps * kBatch * kColumns)));
    EXPECT_NEAR(square, variance, 0.1 * variance) << layer.class_name();
  }
}

}  // namespace
}  // namespace tfjob::model
