// Compares the losses and gradients of regularized models with plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/model/layers/activity_regularization.h"
#include "runtime/model/layers/dense.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {
namespace {

constexpr double kWeight = -0.5;

// Returns a model with two units, whose weights all equal kWeight.
Model Regularized(bool trainable) {
  layers::Dense dense{.units = 2, .use_bias = false};
  dense.kernel_initializer = {.kind = Initializer::Kind::kConstant, .value = kWeight};
  dense.kernel_rules.regularizer = {.kind = Regularizer::Kind::kL1L2, .l1 = 0.3, .l2 = 0.7};
  Layer layer{.name = "layer", .config = dense, .trainable = trainable};
  layer.activity_regularizer = {.kind = Regularizer::Kind::kL1, .l1 = 0.2};
  return Sequential("m", {layer,
                          {.name = "open", .config = layers::Dense{.units = 1}},
                          {.name = "more", .config = layers::ActivityRegularization{0.4, 0.6}}});
}

// Checks that the loss equals the loss without penalties, plus the penalties.
TEST(RegularizerNumerics, ThePenaltiesAreInTheLossOfTrainingAndEvaluation) {
  const Values x = {1, 2, 0, -1, 3, 1, 1, 1, 2, 0, -2, 1};
  double activity = 0;
  for (size_t i = 0; i < x.size(); i += 2) activity += 2 * std::abs(kWeight * (x[i] + x[i + 1]));
  for (const bool trainable : {true, false}) {
    const double kernel = trainable ? 4 * (0.3 * 0.5 + 0.7 * 0.25) : 0;
    for (const Mode mode : {Mode::kTrain, Mode::kEval}) {
      const OneRun run(Regularized(trainable), mode, {x});
      const OneRun predicted(Regularized(trainable), Mode::kPredict, {x});
      double plain = 0, more = 0;
      for (const float y : predicted.Get(kPrediction)) {
        plain += y * y / kBatch;  // the labels are 0
        more += (0.4 * std::abs(y) + 0.6 * y * y) / kBatch;
      }
      const double loss = plain + more + kernel + 0.2 * activity / kBatch;
      EXPECT_NEAR(run.Get(kLoss)[0], loss, 1e-5);
      EXPECT_NEAR(run.Get(kLossSum)[0], kBatch * loss, 1e-4);
    }
  }
}

TEST(RegularizerNumerics, OrthogonalPenaltyIsTheMeanOverPairsOfRows) {
  layers::Dense dense{.units = 2, .use_bias = false};
  dense.kernel_rules.regularizer = {.kind = Regularizer::Kind::kOrthogonal, .factor = 0.5};
  dense.kernel_initializer = {.kind = Initializer::Kind::kRandomNormal, .stddev = 1};
  const OneRun run(Chain(dense), Mode::kTrain, {Values(3 * kBatch)});
  const Tensor kernel =
      InitialValue(dense.kernel_initializer, DType::kFloat32, {3, 2}, 1, "layer/kernel");
  const auto w = kernel.data<float>();
  double mean = 0;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = i + 1; j < 3; ++j) {
      const double product = w[2 * i] * w[2 * j] + w[2 * i + 1] * w[2 * j + 1];
      mean += std::abs(product) / std::hypot(w[2 * i], w[2 * i + 1]) /
              std::hypot(w[2 * j], w[2 * j + 1]) / 3;
    }
  }
  EXPECT_NEAR(run.Get(kLoss)[0], 0.5 * mean, 1e-6);
}

TEST(RegularizerNumerics, TheGradientOfTheOrthogonalPenaltyIsFiniteForRowsOfZeros) {
  layers::Dense dense{.units = 2, .use_bias = false};
  dense.kernel_rules.regularizer = {.kind = Regularizer::Kind::kOrthogonal, .factor = 0.5};
  dense.kernel_initializer = Initializer::Zeros();
  const OneRun run(Chain(dense), Mode::kTrain, {Values(3 * kBatch)});
  EXPECT_EQ(run.Get("gradients/layer/kernel"), Values(6));
}

}  // namespace
}  // namespace tfjob::model
