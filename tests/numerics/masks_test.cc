// Tests how masks propagate through a model, and checks mask-aware layers against plain loops. To
// observe a mask, the tests average over the unmasked steps (GlobalAveragePooling1D).
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/model/layers/activations.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/masking.h"
#include "runtime/model/layers/merge.h"
#include "runtime/model/layers/noise.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/layers/pooling.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/shape.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {
namespace {

constexpr size_t kSteps = 4, kColumns = 2;
constexpr float kPad = -1;

// Returns whether a step is unmasked. The first step of every example is unmasked.
bool Counts(size_t example, size_t step) {
  return (example + step * step) % 3 != 1 || step == 0;
}

// Returns examples of shape [steps,columns], flattened. All elements of masked steps are `pad`. One
// element of an unmasked step is also `pad`.
Values Sequences(float pad) {
  Values x;
  for (size_t example = 0; example < kBatch; ++example) {
    for (size_t i = 0; i < kSteps * kColumns; ++i)
      x.push_back(Counts(example, i / kColumns) ? float(std::sin(double(x.size()))) : pad);
  }
  x[1] = pad;
  return x;
}

// Returns the mean of each column over the unmasked steps or, if `masked` is false, over all steps.
Values Means(const Values& x, bool masked) {
  Values means;
  for (size_t example = 0; example < kBatch; ++example) {
    for (size_t c = 0; c < kColumns; ++c) {
      double sum = 0, count = 0;
      for (size_t step = 0; step < kSteps; ++step) {
        if (masked && !Counts(example, step)) continue;
        sum += x[(example * kSteps + step) * kColumns + c];
        count += 1;
      }
      means.push_back(static_cast<float>(sum / count));
    }
  }
  return means;
}

layers::Reshape ToSteps() {
  return {.target_shape = {kSteps, kColumns}};
}

// Returns a model that applies the layers one after another. The input of the model is flat.
Model Chained(std::vector<LayerConfig> configs) {
  std::vector<Layer> chain = {{.name = "steps", .config = ToSteps()}};
  for (LayerConfig& config : configs)
    chain.push_back({.name = StrCat("layer_", chain.size()), .config = std::move(config)});
  return Sequential("m", std::move(chain));
}

Values Predict(const Model& model, const std::vector<Values>& inputs) {
  return OneRun(model, Mode::kPredict, inputs).Get(kPrediction);
}

void ExpectNear(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

const layers::Masking kMasking{.mask_value = kPad};

TEST(Masks, MaskingSetsTheSkippedStepsToZero) {
  Values wanted = Sequences(0);
  wanted[1] = kPad;  // the other element of this step is not kPad
  ExpectNear(Predict(Chained({kMasking}), {Sequences(kPad)}), wanted);
}

TEST(Masks, LayersThatSupportMaskingPassTheMaskOn) {
  const Values x = Sequences(kPad);
  Values scaled = Sequences(0);
  scaled[1] = kPad;
  for (float& value : scaled) value = std::max(0.0f, 2 * value + 1);
  const Model model =
      Chained({kMasking, layers::Dropout{.rate = 0.5}, layers::Rescaling{.scale = 2, .offset = 1},
               layers::ReLU{}, layers::Activation{}, layers::GlobalAveragePooling1D{}});
  ExpectNear(Predict(model, {x}), Means(scaled, true));
}

TEST(Masks, OtherLayersStopTheMask) {
  Values zeroed = Sequences(0);
  zeroed[1] = kPad;
  const Model model = Chained({kMasking, ToSteps(), layers::GlobalAveragePooling1D{}});
  ExpectNear(Predict(model, {Sequences(kPad)}), Means(zeroed, false));
}

TEST(Masks, ANestedModelTakesAndReturnsMasks) {
  Values shifted = Sequences(0);
  shifted[1] = kPad;
  for (float& value : shifted) value += 1;
  const auto inner = [](LayerConfig layer) {
    return NestedModel{std::make_shared<const Model>(
        Sequential("inner", {{.name = "inner_layer", .config = std::move(layer)}}))};
  };
  const Model model = Chained(
      {inner(kMasking), inner(layers::Rescaling{.offset = 1}), layers::GlobalAveragePooling1D{}});
  ExpectNear(Predict(model, {Sequences(kPad)}), Means(shifted, true));
}

TEST(Masks, ANestedModelThatStopsTheMaskReturnsNone) {
  Values zeroed = Sequences(0);
  zeroed[1] = kPad;
  const NestedModel stop{std::make_shared<const Model>(
      Sequential("inner", {{.name = "inner_layer", .config = ToSteps()}}))};
  const Model model = Chained({kMasking, stop, layers::GlobalAveragePooling1D{}});
  ExpectNear(Predict(model, {Sequences(kPad)}), Means(zeroed, false));
}

// Returns a model that merges two inputs and averages the result. In the second input, steps equal
// to `second` are masked; if `second` is nullopt, the second input has no mask.
Model Merged(LayerConfig merge, std::optional<double> second) {
  Model model = Chained({kMasking, std::move(merge), layers::GlobalAveragePooling1D{}});
  model.sequential = false;
  model.layers.push_back({.name = "second_steps", .config = ToSteps()});
  if (second) {
    model.layers.push_back({.name = "second", .config = layers::Masking{.mask_value = *second}});
  } else {
    model.layers.push_back({.name = "second", .config = layers::Rescaling{}});
  }
  model.calls = {{.layer = 0},
                 {.layer = 4},
                 {.layer = 1, .inputs = {{0, 0}}},
                 {.layer = 5, .inputs = {{1, 0}}},
                 {.layer = 2, .inputs = {{2, 0}, {3, 0}}},
                 {.layer = 3, .inputs = {{4, 0}}}};
  model.inputs = {0, 1};
  model.outputs = {{5, 0}};
  return model;
}

TEST(Masks, AMergedStepCountsIfItDoesInAnyInput) {
  const Values x = Sequences(kPad);
  Values once = Sequences(0), twice;
  once[1] = kPad;
  for (float value : once) twice.push_back(2 * value);
  ExpectNear(Predict(Merged(layers::Add{}, kPad), {x, x}), Means(twice, true));
  // The output has no masked steps, because the second input has none.
  ExpectNear(Predict(Merged(layers::Maximum{}, 100), {x, once}), Means(once, false));
}

TEST(Masks, AMergeWithAnInputWithoutAMaskHasNone) {
  const Values x = Sequences(kPad);
  Values once = Sequences(0);
  once[1] = kPad;
  ExpectNear(Predict(Merged(layers::Maximum{}, std::nullopt), {x, once}), Means(once, false));
}

// As in Keras 3, Multiply treats a masked step like a factor of 1, and Minimum ignores masked
// steps.
TEST(Masks, AStepThatDoesNotCountIsNoFactorAndNoExtreme) {
  const Values x = Sequences(kPad);
  Values product, least;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool counts = Counts(i / kColumns / kSteps, i / kColumns % kSteps);
    product.push_back(counts ? 3 * x[i] : 3);
    least.push_back(counts ? std::min(x[i], 3.0f) : 3);
  }
  const Values three(x.size(), 3);
  ExpectNear(Predict(Merged(layers::Multiply{}, std::nullopt), {x, three}), Means(product, false));
  ExpectNear(Predict(Merged(layers::Minimum{}, std::nullopt), {x, three}), Means(least, false));
}

TEST(Masks, WhereNoStepCountsTheProductIsZero) {
  const Values x = Sequences(kPad);
  Values squares = Sequences(0);
  squares[1] = kPad;
  for (float& value : squares) value *= value;
  const Model model = Merged(layers::Multiply{}, kPad);
  ExpectNear(Predict(model, {x, x}), Means(squares, true));
}

TEST(Masks, JoinedStepsKeepTheirMasks) {
  const Values x = Sequences(kPad);
  const Values got =
      Predict(Merged(layers::Concatenate{.axis = 1}, std::nullopt), {x, Values(x.size(), 1)});
  for (size_t example = 0; example < kBatch; ++example) {
    for (size_t c = 0; c < kColumns; ++c) {
      double sum = kSteps, count = kSteps;  // all values of the second input are 1
      for (size_t step = 0; step < kSteps; ++step) {
        if (!Counts(example, step)) continue;
        sum += x[(example * kSteps + step) * kColumns + c];
        count += 1;
      }
      EXPECT_NEAR(got[example * kColumns + c], sum / count, 1e-5);
    }
  }
}

TEST(Masks, BatchNormalizationLearnsFromTheStepsThatCount) {
  const Values x = Sequences(kPad);
  layers::BatchNormalization layer;
  layer.momentum = 0;
  const OneRun run(Chained({kMasking, layer, ToSteps()}), Mode::kTrain, {x});
  const Values mean = run.Get("assignments/layer_2/moving_mean");
  const Values variance = run.Get("assignments/layer_2/moving_variance");
  for (size_t c = 0; c < kColumns; ++c) {
    double sum = 0, squares = 0, count = 0;
    for (size_t i = c; i < x.size(); i += kColumns) {
      if (!Counts(i / kColumns / kSteps, i / kColumns % kSteps)) continue;
      sum += x[i];
      squares += double(x[i]) * x[i];
      count += 1;
    }
    EXPECT_NEAR(mean[c], sum / count, 1e-5);
    EXPECT_NEAR(variance[c], squares / count - std::pow(sum / count, 2), 1e-5);
  }
}

// In OneRun, all labels are 0.
TEST(Masks, TheLossIsTheMeanOverTheStepsThatCount) {
  const Values x = Sequences(kPad);
  double sum = 0, count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!Counts(i / kColumns / kSteps, i / kColumns % kSteps)) continue;
    sum += double(x[i]) * x[i];
    count += 1;
  }
  const OneRun run(Chained({kMasking}), Mode::kEval, {x});
  EXPECT_NEAR(run.Get(kLoss)[0], sum / count, 1e-5);
  EXPECT_NEAR(run.Get(kLossSum)[0], sum / count * kBatch, 1e-5);
}

// As in Keras, metrics that are means of losses respect the mask, but RootMeanSquaredError ignores
// it.
TEST(Masks, AMetricThatIsAMeanCountsTheStepsThatCount) {
  const Values x = Sequences(kPad);
  double sum = 0, count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    // Skip masked steps: Masking has set them to 0, which equals their label.
    if (!Counts(i / kColumns / kSteps, i / kColumns % kSteps)) continue;
    sum += double(x[i]) * x[i];
    count += 1;
  }
  const OneRun run(Chained({kMasking}), Mode::kEval, {x}, 0,
                   {LossKind::kMeanSquaredError, Metric::kRootMeanSquaredError});
  const auto value = [&](Metric metric, const std::string& fetch) {
    const Values sums = run.Get(fetch);
    EXPECT_EQ(static_cast<int64_t>(sums.size()), SumsOf(metric, 1, true));
    return MetricValue(metric, std::vector<double>(sums.begin(), sums.end()), kBatch);
  };
  EXPECT_NEAR(value(LossKind::kMeanSquaredError, "mean_squared_error_sum"), sum / count, 1e-5);
  EXPECT_NEAR(value(Metric::kRootMeanSquaredError, "root_mean_squared_error_sum"),
              std::sqrt(sum / double(x.size())), 1e-5);
}

TEST(Masks, SoftmaxNeedsAMaskOfItsInputsShape) {
  const Model model = Chained({kMasking, layers::Softmax{}});
  const auto built = Build(
      model,
      {.mode = Mode::kPredict, .batch_size = kBatch, .features = Features({kSteps * kColumns})});
  ASSERT_FALSE(built.ok());
  EXPECT_NE(Message(built.status()).find("Softmax needs a mask of the shape of its input"),
            std::string::npos)
      << built.status();
}

}  // namespace
}  // namespace tfjob::model
