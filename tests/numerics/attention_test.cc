// Compares attention layers, and other layers that are often used together with them, with plain
// loops in double precision.
#include "runtime/model/layers/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "runtime/model/layer/vector_normalization.h"
#include "runtime/model/layers/dot.h"
#include "runtime/model/layers/einsum_dense.h"
#include "runtime/model/layers/fixed_normalization.h"
#include "runtime/model/layers/group_normalization.h"
#include "runtime/model/layers/multi_head_attention.h"
#include "runtime/model/layers/noise.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/shape.h"
#include "tests/numerics/one_run.h"

namespace tfjob::model {
namespace {

constexpr int64_t kSteps = 4, kSize = 3;

Values Waves(double scale, int64_t per_example = kSteps * kSize) {
  Values values(static_cast<size_t>(kBatch * per_example));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(scale * static_cast<double>(i) + 1) * scale);
  return values;
}

// Returns a model that reshapes each input to the corresponding shape in `shapes`, and passes all
// inputs to the layer.
Model Shaped(LayerConfig config, const std::vector<std::vector<int64_t>>& shapes) {
  Model model = Sequential("m", {{.name = "layer", .config = std::move(config)}});
  model.calls.clear();
  model.inputs.clear();
  Call last{.layer = 0};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int number = static_cast<int>(i);
    layers::Reshape reshape;
    reshape.target_shape = shapes[i];
    model.layers.push_back({.name = StrCat("in_", i), .config = reshape});
    model.calls.push_back({.layer = 1 + number});
    model.inputs.push_back(number);
    last.inputs.push_back({number, 0});
  }
  model.calls.push_back(std::move(last));
  model.outputs = {{static_cast<int>(shapes.size()), 0}};
  return model;
}

Values Predict(LayerConfig config, const std::vector<std::vector<int64_t>>& shapes,
               const std::vector<Values>& inputs) {
  return OneRun(Shaped(std::move(config), shapes), Mode::kPredict, inputs).Get(kPrediction);
}

// Returns the initial values of a layer's variables. The keys are the names of the variables.
std::map<std::string, std::vector<double>> VariablesOf(const LayerConfig& layer,
                                                       const std::vector<TensorType>& in) {
  std::map<std::string, std::vector<double>> values;
  for (const VariableSpec& spec : layer.Variables(in)) {
    const Tensor value =
        InitialValue(spec.initializer, DType::kFloat32, spec.shape, 1, "layer/" + spec.name);
    for (float number : value.data<float>()) values[spec.name].push_back(number);
  }
  return values;
}

// Returns y, where y[i] = Σ x[j] kernel[j,i] + bias[i].
std::vector<double> Dense(const std::vector<double>& x, const std::vector<double>& kernel,
                          const std::vector<double>& bias) {
  std::vector<double> y = bias;
  for (size_t i = 0; i < y.size(); ++i)
    for (size_t j = 0; j < x.size(); ++j) y[i] += x[j] * kernel[j * y.size() + i];
  return y;
}

std::vector<double> Row(const Values& values, int64_t row) {
  return {values.begin() + row * kSize, values.begin() + (row + 1) * kSize};
}

TEST(AttentionNumerics, EachHeadAttendsToWhatIsNotLater) {
  constexpr size_t kHeads = 2, kKey = 3, kValue = 2;
  layers::MultiHeadAttention layer;
  layer.num_heads = kHeads;
  layer.key_dim = kKey;
  layer.value_dim = kValue;
  layer.use_causal_mask = true;
  layer.bias_initializer = {.kind = Initializer::Kind::kConstant, .value = 0.25};
  const Values x = Waves(1), v = Waves(2);
  const std::vector<std::vector<int64_t>> shapes(2, {kSteps, kSize});
  const Values got = Predict(layer, shapes, {x, v});
  const TensorType type{DType::kFloat32, {kSteps, kSize}};
  auto variables = VariablesOf(layer, {type, type});
  const auto project = [&](const std::string& name, const std::vector<double>& row) {
    return Dense(row, variables[name + "/kernel"], variables[name + "/bias"]);
  };
  for (int64_t example = 0; example < kBatch; ++example) {
    for (int64_t t = 0; t < kSteps; ++t) {
      const std::vector<double> query = project("query", Row(x, example * kSteps + t));
      std::vector<double> heads(kHeads * kValue);
      for (size_t head = 0; head < kHeads; ++head) {
        double total = 0;
        std::vector<double> sum(kValue);
        for (int64_t s = 0; s <= t; ++s) {
          const std::vector<double> key = project("key", Row(v, example * kSteps + s));
          const std::vector<double> value = project("value", Row(v, example * kSteps + s));
          double score = 0;
          for (size_t i = 0; i < kKey; ++i) score += query[head * kKey + i] * key[head * kKey + i];
          const double weight = std::exp(score / std::sqrt(double(kKey)));
          total += weight;
          for (size_t i = 0; i < kValue; ++i) sum[i] += weight * value[head * kValue + i];
        }
        for (size_t i = 0; i < kValue; ++i) heads[head * kValue + i] = sum[i] / total;
      }
      const std::vector<double> y = project("attention_output", heads);
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(got[static_cast<size_t>((example * kSteps + t) * kSize) + i], y[i], 1e-5);
    }
  }
}

// Checks that `got` contains Σ over s of softmax(score(t,s))·v[s], over the positions s that
// `counts` accepts.
template <typename Score, typename Counts>
void ExpectAttention(const Values& got, const Values& v, const Score& score, const Counts& counts) {
  for (int64_t row = 0; row < kBatch * kSteps; ++row) {
    const int64_t first = row / kSteps * kSteps;
    double total = 0;
    std::vector<double> sum(kSize);
    for (int64_t s = 0; s < kSteps; ++s) {
      if (!counts(row - first, s)) continue;
      const double weight = std::exp(score(row, first + s));
      total += weight;
      for (size_t i = 0; i < kSize; ++i)
        sum[i] += weight * v[static_cast<size_t>((first + s) * kSize) + i];
    }
    for (size_t i = 0; i < kSize; ++i)
      EXPECT_NEAR(got[static_cast<size_t>(row * kSize) + i], sum[i] / total, 1e-5);
  }
}

TEST(AttentionNumerics, ScoresAreProductsOrSums) {
  const Values q = Waves(1), v = Waves(2), k = Waves(3);
  const std::vector<std::vector<int64_t>> shapes(3, {kSteps, kSize});
  const auto all = [](int64_t, int64_t) { return true; };
  const auto dot = [&](int64_t t, int64_t s) {
    double sum = 0;
    for (size_t i = 0; i < kSize; ++i) sum += Row(q, t)[i] * Row(k, s)[i];
    return sum;
  };
  const auto tanh = [&](int64_t t, int64_t s) {
    double sum = 0;
    for (size_t i = 0; i < kSize; ++i) sum += std::tanh(Row(q, t)[i] + Row(k, s)[i]);
    return sum;
  };
  layers::Attention attention;
  attention.inputs = {0, 1, 2};
  attention.use_scale = true;
  ExpectAttention(Predict(attention, shapes, {q, v, k}), v, dot, all);
  attention.use_causal_mask = true;
  ExpectAttention(Predict(attention, shapes, {q, v, k}), v, dot,
                  [](int64_t t, int64_t s) { return s <= t; });
  attention.use_causal_mask = false;
  attention.score_mode = layers::Attention::ScoreMode::kConcat;
  ExpectAttention(Predict(attention, shapes, {q, v, k}), v, tanh, all);
  layers::AdditiveAttention additive;
  additive.inputs = {0, 1, 2};
  additive.use_scale = false;
  ExpectAttention(Predict(additive, shapes, {q, v, k}), v, tanh, all);
}

TEST(AttentionNumerics, DotSumsAlongOneAxisOfEachInput) {
  layers::Dot dot;
  dot.axes = {2, 1};
  const Values x = Waves(1), y = Waves(2, kSize * 5);
  const Values got = Predict(dot, {{kSteps, kSize}, {kSize, 5}}, {x, y});
  ASSERT_EQ(got.size(), static_cast<size_t>(kBatch * kSteps * 5));
  for (int64_t row = 0; row < kBatch * kSteps; ++row) {
    for (int64_t c = 0; c < 5; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < kSize; ++i)
        sum += double(x[static_cast<size_t>(row * kSize + i)]) *
               y[static_cast<size_t>((row / kSteps * kSize + i) * 5 + c)];
      EXPECT_NEAR(got[static_cast<size_t>(row * 5 + c)], sum, 1e-5);
    }
  }
  dot.axes = {1};
  dot.normalize = true;
  for (float cosine : Predict(dot, {{12}, {12}}, {x, x})) EXPECT_NEAR(cosine, 1, 1e-5);
}

// Examples have the shape [4,3], the kernel has the shape [3,2,5], and the bias has only the last
// axis.
TEST(AttentionNumerics, EinsumDenseFollowsItsEquation) {
  layers::EinsumDense layer;
  layer.equation = "abc,cde->abde";
  layer.output_shape = {-1, 2, 5};
  layer.bias_axes = "e";
  layer.bias_initializer = {.kind = Initializer::Kind::kConstant, .value = 0.5};
  const Values x = Waves(1);
  const Values got = Predict(layer, {{kSteps, kSize}}, {x});
  auto variables = VariablesOf(layer, {{DType::kFloat32, {kSteps, kSize}}});
  ASSERT_EQ(variables["bias"].size(), 5u);
  const std::vector<double> none(10);
  for (int64_t row = 0; row < kBatch * kSteps; ++row) {
    const std::vector<double> y = Dense(Row(x, row), variables["kernel"], none);
    for (size_t i = 0; i < 10; ++i)
      EXPECT_NEAR(got[static_cast<size_t>(row) * 10 + i], y[i] + 0.5, 1e-5);
  }
}

TEST(AttentionNumerics, GroupsAndVectorsAreNormalised) {
  const Values x = Waves(2, kSteps * 6);
  layers::GroupNormalization groups;
  groups.groups = 2;
  const Values got = Predict(groups, {{kSteps, 6}}, {x});
  for (int64_t example = 0; example < kBatch; ++example) {
    for (int64_t group = 0; group < 2; ++group) {
      const auto at = [&](int64_t i) {
        return static_cast<size_t>((example * kSteps + i / 3) * 6 + group * 3 + i % 3);
      };
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < kSteps * 3; ++i) mean += x[at(i)] / (kSteps * 3.0);
      for (int64_t i = 0; i < kSteps * 3; ++i)
        variance += std::pow(x[at(i)] - mean, 2) / (kSteps * 3.0);
      for (int64_t i = 0; i < kSteps * 3; ++i)
        EXPECT_NEAR(got[at(i)], (x[at(i)] - mean) / std::sqrt(variance + 1e-3), 1e-5);
    }
  }
  const Values unit = Predict(layers::UnitNormalization{}, {{kSteps, 6}}, {x});
  const Values rms = Predict(layers::RMSNormalization{}, {{kSteps, 6}}, {x});
  for (size_t row = 0; row < x.size() / 6; ++row) {
    double squares = 0;
    for (size_t i = row * 6; i < row * 6 + 6; ++i) squares += double(x[i]) * x[i];
    for (size_t i = row * 6; i < row * 6 + 6; ++i) {
      EXPECT_NEAR(unit[i], x[i] / std::sqrt(squares), 1e-5);
      EXPECT_NEAR(rms[i], x[i] / std::sqrt(squares / 6 + 1e-6), 1e-5);
    }
  }
}

TEST(AttentionNumerics, NormalizationUsesTheStatedMoments) {
  layers::Normalization layer;
  layer.mean = {1, 2, 3};
  layer.variance = {4, 0.25, 0};
  const Values x = Waves(1);
  const double roots[] = {2, 0.5, 1e-7};
  for (const bool invert : {false, true}) {
    layer.invert = invert;
    const Values got = Predict(layer, {{kSteps, kSize}}, {x});
    for (size_t i = 0; i < x.size(); ++i) {
      const double mean = layer.mean[i % 3], root = roots[i % 3];
      const double wanted = invert ? x[i] * root + mean : (x[i] - mean) / root;
      EXPECT_NEAR(got[i], wanted, 1e-5 * std::max(1.0, std::abs(wanted)));
    }
  }
}

// The training loss is the mean square of the output, because the labels are 0. The layer after the
// dropout is needed only because training requires variables.
TEST(AttentionNumerics, SpatialDropoutDropsWholeChannels) {
  const Values ones(static_cast<size_t>(kBatch * kSteps * kSize), 1.0f);
  layers::SpatialDropout1D drop;
  drop.rate = 0.5;
  Model model = Shaped(drop, {{kSteps, kSize}});
  layers::EinsumDense sum;  // returns 0, or twice the number of steps
  sum.equation = "abc,b->ac";
  sum.output_shape = {kSize};
  sum.kernel_initializer = Initializer::Ones();
  model.layers.push_back({.name = "sum", .config = sum});
  model.calls.push_back({.layer = 2, .inputs = {{1, 0}}});
  model.outputs = {{2, 0}};
  const double loss = OneRun(model, Mode::kTrain, {ones}).Get(kLoss)[0];
  const double kept = loss * kBatch * kSize / (4.0 * kSteps * kSteps);  // number of channels kept
  EXPECT_NEAR(kept, std::round(kept), 1e-4);
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, kBatch * kSize);
}

// Equal outputs in training: with this noise_shape, a channel is kept or dropped in all steps.
TEST(AttentionNumerics, NoiseShapeOfDropoutSharesTheNoise) {
  const Values x = Waves(1.5);
  const auto loss = [&](LayerConfig drop) {
    Model model = Shaped(std::move(drop), {{kSteps, kSize}});
    layers::EinsumDense scale;
    scale.equation = "abc,c->abc";
    scale.output_shape = {kSteps, kSize};
    model.layers.push_back({.name = "scale", .config = scale});
    model.calls.push_back({.layer = 2, .inputs = {{1, 0}}});
    model.outputs = {{2, 0}};
    return OneRun(model, Mode::kTrain, {x}).Get(kLoss)[0];
  };
  const float spatial = loss(layers::SpatialDropout1D{.rate = 0.5});
  EXPECT_EQ(loss(layers::Dropout{.rate = 0.5, .noise_shape = {-1, 1, kSize}}), spatial);
  EXPECT_EQ(loss(layers::Dropout{.rate = 0.5, .noise_shape = {kBatch, 1, -1}}), spatial);
  EXPECT_NE(loss(layers::Dropout{.rate = 0.5}), spatial);
  EXPECT_NE(loss(layers::AlphaDropout{.rate = 0.5, .noise_shape = {-1, 1, -1}}),
            loss(layers::AlphaDropout{.rate = 0.5}));
}

// The groups are the rows of the first axis of positions, or of the second one, in a batch of
// [rows,columns,elements].
TEST(AttentionNumerics, AttentionAxesFormGroups) {
  constexpr int64_t kRows = 2, kColumns = 3, kElements = 2;
  const Values x = Waves(1.5, kRows * kColumns * kElements);
  layers::MultiHeadAttention attend{.num_heads = 2, .key_dim = 3, .use_gate = true};
  for (const int64_t axis : {1, 2}) {
    attend.attention_axes = {axis};
    const std::vector<int64_t> shape = {kRows, kColumns, kElements};
    const Values got = Predict(attend, {shape, shape}, {x, x});
    const int64_t groups = axis == 1 ? kColumns : kRows, positions = axis == 1 ? kRows : kColumns;
    for (int64_t group = 0; group < groups; ++group) {
      const auto place = [&](int64_t n, int64_t position, int64_t element) {
        const int64_t row = axis == 1 ? position : group, column = axis == 1 ? group : position;
        return static_cast<size_t>(((n * kRows + row) * kColumns + column) * kElements + element);
      };
      Values own, wanted;
      for (int64_t i = 0; i < kBatch * positions * kElements; ++i) {
        const size_t at =
            place(i / kElements / positions, i / kElements % positions, i % kElements);
        own.push_back(x[at]);
        wanted.push_back(got[at]);
      }
      attend.attention_axes = {};
      const Values alone =
          Predict(attend, {{positions, kElements}, {positions, kElements}}, {own, own});
      ASSERT_EQ(alone.size(), wanted.size());
      for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(wanted[i], alone[i], 1e-5) << i;
    }
  }
}

TEST(AttentionNumerics, ErrorsOfAxesAndNoiseNameTheShape) {
  const auto error = [](LayerConfig layer, const std::vector<TensorType>& in) {
    return std::string(Message(layer.OutputTypes(in).status()));
  };
  const TensorType wide{DType::kFloat32, {2, 3, 4}}, narrow{DType::kFloat32, {2, 5, 4}};
  const auto attend = [&](std::vector<int64_t> axes) {
    return layers::MultiHeadAttention{.key_dim = 3, .attention_axes = std::move(axes)};
  };
  EXPECT_EQ(error(attend({2, 1}), {wide, wide}),
            "attention_axes: expected axes from 1 to 2, in ascending order, for inputs [2,3,4] "
            "(axis 0 is the batch), got 1");
  EXPECT_EQ(error(attend({1}), {wide, narrow}),
            "attention_axes: expected inputs that have the same sizes along the other axes of "
            "positions, got [2,3,4] and [2,5,4]");
  EXPECT_EQ(error(layers::Dropout{.rate = 0.5, .noise_shape = {-1, 2}}, {wide}),
            "noise_shape: expected null, 1 or the size of the input for the batch and for each "
            "axis of [2,3,4]");
}

// Checks the statistics of the batch, which are read from the moving statistics of a
// BatchNormalization with momentum 0.
TEST(AttentionNumerics, AlphaDropoutMovesAndScales) {
  constexpr int64_t kFeatures = 1000;
  const Values ones(kBatch * kFeatures, 1.0f);
  layers::AlphaDropout drop;
  drop.rate = 0.3;
  layers::BatchNormalization watch;
  watch.momentum = 0;
  const Model model =
      Sequential("m", {{.name = "drop", .config = drop}, {.name = "watch", .config = watch}});
  const Values means = OneRun(model, Mode::kTrain, {ones}).Get("assignments/watch/moving_mean");
  const double least = -1.6732632423543772 * 1.0507009873554805;
  const double factor = 1 / std::sqrt(0.7 * (1 + 0.3 * least * least));
  const double expected = factor * 0.7, spread = factor * (1 - least) * std::sqrt(0.3 * 0.7);
  double mean = 0;
  for (float value : means) mean += value / double(kFeatures);
  EXPECT_NEAR(mean, expected, 5 * spread / std::sqrt(double(kBatch * kFeatures)));
  EXPECT_EQ(OneRun(Chain(drop), Mode::kPredict, {ones}).Get(kPrediction), ones);
}

}  // namespace
}  // namespace tfjob::model
