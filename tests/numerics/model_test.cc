// Compares models with plain loops in double precision: outputs, losses, metrics, gradients,
// updates and training.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runtime/data/pipeline.h"
#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/model/layers/activations.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/shape.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

using layers::Dense;
using layers::Flatten;
using layers::ReLU;
using layers::Reshape;
using layers::Softmax;

constexpr int kBatch = 5, kIn = 4, kHidden = 6, kOut = 3;

using Vector = std::vector<double>;

// Contains the reference implementation: a network kIn → kHidden → kOut of dense layers, as plain
// loops.
struct Net {
  Vector w1, b1, w2, b2;
  ActivationKind hidden = ActivationKind::kTanh;
  bool softmax = false;
};

double Activated(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kRelu:
      return std::max(0.0, x);
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    default:
      return x;
  }
}

Vector Row(const Net& net, const float* x) {
  Vector h(kHidden), y(kOut);
  for (int j = 0; j < kHidden; ++j) {
    h[j] = net.b1[j];
    for (int i = 0; i < kIn; ++i) h[j] += x[i] * net.w1[i * kHidden + j];
    h[j] = Activated(net.hidden, h[j]);
  }
  double sum = 0;
  for (int k = 0; k < kOut; ++k) {
    y[k] = net.b2[k];
    for (int j = 0; j < kHidden; ++j) y[k] += h[j] * net.w2[j * kOut + k];
    sum += std::exp(y[k]);
  }
  if (net.softmax) {
    for (double& value : y) value = std::exp(value) / sum;
  }
  return y;
}

// Contains the features and labels of these tests.
struct Examples {
  Tensor features{DType::kFloat32, {kBatch, kIn}};
  Tensor classes{DType::kInt64, {kBatch}};
  Tensor one_hot{DType::kFloat32, {kBatch, kOut}};
  Tensor values{DType::kFloat32, {kBatch, kOut}};

  Examples() {
    for (size_t i = 0; i < kBatch * kIn; ++i)
      features.data<float>()[i] = static_cast<float>(std::sin(3.0 * i + 1));
    for (size_t i = 0; i < kBatch; ++i) {
      classes.data<int64_t>()[i] = static_cast<int64_t>((i * 2) % kOut);
      one_hot.data<float>()[i * kOut + (i * 2) % kOut] = 1;
    }
    for (size_t i = 0; i < kBatch * kOut; ++i)
      values.data<float>()[i] = static_cast<float>(std::cos(2.0 * i));
  }
};

struct Case {
  std::string name;
  ActivationKind hidden;
  bool softmax;
  Loss loss;
  const Tensor& labels;
  std::function<double(const Vector& y, size_t row)> reference;
};

double LogSumExp(const Vector& y) {
  double sum = 0;
  for (double value : y) sum += std::exp(value);
  return std::log(sum);
}

std::vector<Case> Cases(const Examples& examples) {
  const auto label = [&](size_t row) {
    return static_cast<size_t>(examples.classes.data<int64_t>()[row]);
  };
  const auto sparse = [=](const Vector& y, size_t row) { return LogSumExp(y) - y[label(row)]; };
  const auto log_p = [=](const Vector& p, size_t row) { return -std::log(p[label(row)]); };
  const auto squares = [&](const Vector& y, size_t row) {
    double sum = 0;
    for (size_t k = 0; k < kOut; ++k)
      sum += std::pow(y[k] - examples.values.data<float>()[row * kOut + k], 2);
    return sum / kOut;
  };
  using enum LossKind;
  using enum ActivationKind;
  return {
      {"sparse from logits",
       kTanh,
       false,
       {kSparseCategoricalCrossentropy, true},
       examples.classes,
       sparse},
      {"sparse from softmax",
       kRelu,
       true,
       {kSparseCategoricalCrossentropy},
       examples.classes,
       log_p},
      {"sparse, sum",
       kSigmoid,
       false,
       {kSparseCategoricalCrossentropy, true, true},
       examples.classes,
       sparse},
      {"categorical from logits",
       kTanh,
       false,
       {kCategoricalCrossentropy, true},
       examples.one_hot,
       sparse},
      {"categorical from softmax",
       kTanh,
       true,
       {kCategoricalCrossentropy},
       examples.one_hot,
       log_p},
      {"clipped", kRelu, true, {kClippedCrossentropy}, examples.one_hot, log_p},
      {"squared error", kTanh, false, {kMeanSquaredError}, examples.values, squares},
  };
}

// Contains the program of a graph, and a store with the model's variables.
struct TrainedModel {
  variables::VariableStore store = TestStore();
  BuiltGraph built;
  std::unique_ptr<exec::Program> program;

  TrainedModel(const Model& model, const BuildOptions& options, uint64_t seed = 3) {
    StatusOr<BuiltGraph> graph = Build(model, options);
    EXPECT_TRUE(graph.ok()) << graph.status();
    built = *std::move(graph);
    for (const VariableSpec& spec : built.variables) {
      auto variable = store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable);
      const Tensor value = InitialValue(spec.initializer, spec.dtype, spec.shape, seed, spec.name);
      EXPECT_TRUE((*variable)->FromTensor(value).ok());
    }
    Compile();
  }
  void Compile() {
    auto compiled = exec::Compile(built.graph, store, TestDevice());
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    program = *std::move(compiled);
  }
  void Step(const Tensor& features, const Tensor& labels, int64_t step = 0) {
    const int64_t seed = 1;
    std::vector<exec::Feed> feeds = {exec::Feed::Of(features), exec::Feed::Of(labels)};
    if (program->FindFeed(kStep) >= 0)
      feeds.insert(feeds.end(), {exec::Feed::Of(step), exec::Feed::Of(seed)});
    const Status status = program->Run(feeds);
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<float> Get(std::string_view fetch) const {
    const auto values = program->Fetch<float>(program->FindFetch(fetch));
    return {values.begin(), values.end()};
  }
  Vector Variable(const char* name) const {
    const Tensor value = store.Find(name)->ToTensor();
    return {value.data<float>().begin(), value.data<float>().end()};
  }
};

Model Mlp(const Case& c) {
  const Initializer spread{.kind = Initializer::Kind::kRandomNormal, .stddev = 0.5};
  const ActivationKind last = c.softmax ? ActivationKind::kSoftmax : ActivationKind::kLinear;
  return Sequential("mlp", {{.name = "dense",
                             .config = Dense{.units = kHidden,
                                             .activation = c.hidden,
                                             .kernel_initializer = spread,
                                             .bias_initializer = spread}},
                            {.name = "dense_1",
                             .config = Dense{.units = kOut,
                                             .activation = last,
                                             .kernel_initializer = spread,
                                             .bias_initializer = spread}}});
}

BuildOptions OptionsFor(const Case& c, Mode mode) {
  const std::vector<int64_t>& dims = c.labels.shape().dims();
  const bool squares = c.loss.kind == LossKind::kMeanSquaredError;
  return {.mode = mode,
          .batch_size = kBatch,
          .features = Features({kIn}),
          .objectives = {
              {.loss = c.loss,
               .metrics = {squares ? Metric(LossKind::kMeanSquaredError) : Metric::kAccuracy},
               .labels = {c.labels.dtype(),
                          Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()))}}}};
}

Net NetOf(const Case& c, const TrainedModel& run) {
  return {run.Variable("dense/kernel"),
          run.Variable("dense/bias"),
          run.Variable("dense_1/kernel"),
          run.Variable("dense_1/bias"),
          c.hidden,
          c.softmax};
}

double ReferenceSum(const Case& c, const Net& net, const Examples& examples) {
  double sum = 0;
  for (size_t row = 0; row < kBatch; ++row) {
    sum += c.reference(Row(net, examples.features.data<float>().data() + row * kIn), row);
  }
  return sum;
}

TEST(ModelNumerics, LossesMetricsAndOutputsAgreeWithPlainLoops) {
  const Examples examples;
  for (const Case& c : Cases(examples)) {
    TrainedModel run(Mlp(c), OptionsFor(c, Mode::kEval));
    run.Step(examples.features, c.labels);
    const Net net = NetOf(c, run);
    const double sum = ReferenceSum(c, net, examples);
    EXPECT_NEAR(run.Get(kLossSum)[0], sum, 1e-4) << c.name;
    EXPECT_NEAR(run.Get(kLoss)[0], c.loss.sum ? sum : sum / kBatch, 1e-4) << c.name;
    const std::vector<float> prediction = run.Get(kPrediction);
    double hits = 0;
    for (size_t row = 0; row < kBatch; ++row) {
      const Vector y = Row(net, examples.features.data<float>().data() + row * kIn);
      for (size_t k = 0; k < kOut; ++k)
        EXPECT_NEAR(prediction[row * kOut + k], y[k], 1e-5) << c.name;
      const auto best = std::max_element(y.begin(), y.end()) - y.begin();
      hits += best == examples.classes.data<int64_t>()[row] ? 1 : 0;
    }
    const bool squares = c.loss.kind == LossKind::kMeanSquaredError;
    EXPECT_NEAR(run.Get(run.built.metrics[0].fetch)[0], squares ? sum : hits, 1e-4) << c.name;
  }
}

TEST(ModelNumerics, GradientsAgreeWithCentralDifferencesOfPlainLoops) {
  const Examples examples;
  for (const Case& c : Cases(examples)) {
    TrainedModel run(Mlp(c), OptionsFor(c, Mode::kTrain));
    run.Step(examples.features, c.labels);
    Net net = NetOf(c, run);
    const double scale = c.loss.sum ? 1 : 1.0 / kBatch;
    const std::pair<const char*, Vector*> kParts[] = {{"gradients/dense/kernel", &net.w1},
                                                      {"gradients/dense/bias", &net.b1},
                                                      {"gradients/dense_1/kernel", &net.w2},
                                                      {"gradients/dense_1/bias", &net.b2}};
    for (const auto& [fetch, part] : kParts) {
      const std::vector<float> gradient = run.Get(fetch);
      ASSERT_EQ(gradient.size(), part->size());
      for (size_t i = 0; i < part->size(); ++i) {
        const double value = (*part)[i];
        constexpr double kStepSize = 1e-6;
        (*part)[i] = value + kStepSize;
        const double above = ReferenceSum(c, net, examples);
        (*part)[i] = value - kStepSize;
        const double below = ReferenceSum(c, net, examples);
        (*part)[i] = value;
        EXPECT_NEAR(gradient[i], scale * (above - below) / (2 * kStepSize), 2e-4)
            << c.name << " " << fetch << i;
      }
    }
  }
}

// Covers the values that are clipped by the formulas in loss.h: the outputs of ReLU include zeros
// and values above 1.
TEST(ModelNumerics, LossesOfProbabilitiesClipAsKerasDoes) {
  const Model model = Sequential("m", {{.name = "re_lu", .config = ReLU{}}});
  Tensor features(DType::kFloat32, {kBatch, kOut});
  const Examples examples;
  for (size_t i = 0; i < kBatch * kOut; ++i) {
    features.data<float>()[i] = static_cast<float>(2 * std::sin(5.0 * i + 2));
  }
  const auto clip = [](double p) { return std::min(std::max(p, 1e-7), 1 - 1e-7); };
  double sparse = 0, categorical = 0, clipped = 0;
  for (size_t row = 0; row < kBatch; ++row) {
    double sum = 0, clipped_sum = 0;
    for (size_t k = 0; k < kOut; ++k) {
      const double p = std::max(0.0f, features.data<float>()[row * kOut + k]);
      sum += p;
      clipped_sum += clip(p);
    }
    const size_t label = static_cast<size_t>(examples.classes.data<int64_t>()[row]);
    const double p = std::max(0.0f, features.data<float>()[row * kOut + label]);
    sparse -= std::log(clip(p) / clipped_sum);
    categorical -= std::log(clip(p / sum));
    clipped -= std::log(std::min(std::max(p, 1e-10), 1.0));
  }
  using enum LossKind;
  const std::tuple<LossKind, const Tensor&, double> kExpected[] = {
      {kSparseCategoricalCrossentropy, examples.classes, sparse},
      {kCategoricalCrossentropy, examples.one_hot, categorical},
      {kClippedCrossentropy, examples.one_hot, clipped}};
  EXPECT_GT(clipped, 23) << "at least one label meets a zero";
  for (const auto& [kind, labels, expected] : kExpected) {
    const bool classes = kind == kSparseCategoricalCrossentropy;
    TrainedModel run(
        model, {.mode = Mode::kEval,
                .batch_size = kBatch,
                .features = Features({kOut}),
                .objectives = {{.loss = {.kind = kind},
                                .labels = {labels.dtype(), classes ? Shape() : Shape({kOut})}}}});
    run.Step(features, labels);
    EXPECT_NEAR(run.Get(kLossSum)[0], expected, 1e-3) << Name(kind);
  }
}

TEST(ModelNumerics, AnAppliedOptimizerMovesAgainstTheGradient) {
  const Examples examples;
  const Case c = Cases(examples)[0];
  TrainedModel fetched(Mlp(c), OptionsFor(c, Mode::kTrain));
  fetched.Step(examples.features, c.labels);
  BuildOptions options = OptionsFor(c, Mode::kTrain);
  options.optimizer = optimizer::Optimizer();
  options.optimizer->learning_rate = 0.1;
  TrainedModel applied(Mlp(c), options);
  const Vector before = applied.Variable("dense/kernel");
  applied.Step(examples.features, c.labels);
  const Vector after = applied.Variable("dense/kernel");
  const std::vector<float> gradient = fetched.Get("gradients/dense/kernel");
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_NEAR(after[i], before[i] - 0.1 * gradient[i], 1e-6);
}

TEST(ModelNumerics, ReshapesAndHigherRanksKeepTheValues) {
  const Model model =
      Sequential("m", {{.name = "reshape", .config = Reshape{.target_shape = {2, -1}}},
                       {.name = "dense", .config = Dense{.units = 3}},
                       {.name = "flatten", .config = Flatten{}},
                       {.name = "softmax", .config = Softmax{}}});
  const Examples examples;
  TrainedModel run(model, {.mode = Mode::kEval,
                           .batch_size = kBatch,
                           .features = Features({kIn}),
                           .objectives = {{.loss = {.kind = LossKind::kMeanSquaredError},
                                           .labels = {DType::kFloat32, {6}}}}});
  run.Step(examples.features, Tensor(DType::kFloat32, {kBatch, 6}));
  const std::vector<float> prediction = run.Get(kPrediction);
  ASSERT_EQ(prediction.size(), 30u);
  const Vector w = run.Variable("dense/kernel");
  for (size_t row = 0; row < kBatch; ++row) {
    Vector y(6);
    for (size_t part = 0; part < 2; ++part) {
      for (size_t k = 0; k < 3; ++k) {
        for (size_t i = 0; i < 2; ++i) {
          y[part * 3 + k] +=
              examples.features.data<float>()[row * kIn + part * 2 + i] * w[i * 3 + k];
        }
      }
    }
    for (size_t k = 0; k < 6; ++k)
      EXPECT_NEAR(prediction[row * 6 + k], std::exp(y[k] - LogSumExp(y)), 1e-5);
  }
}

// A single dense layer that is trained with Adagrad must find the line y = 2x + 10.
TEST(ModelNumerics, LinearRegressionFindsTheLine) {
  const Model model = Sequential("line", {{.name = "dense", .config = Dense{.units = 1}}});
  BuildOptions options{.batch_size = 10,
                       .features = Features({1}),
                       .objectives = {{.loss = {.kind = LossKind::kMeanSquaredError},
                                       .labels = {DType::kFloat32, {}}}}};
  options.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdagrad);
  options.optimizer->learning_rate = 1;
  TrainedModel run(model, options);
  auto dataset = data::MakeLinear({.seed = 1});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const std::vector<data::Column> columns = data::FloatColumns(*dataset);
  auto pipeline = data::Pipeline::Create(std::make_shared<const data::Dataset>(*std::move(dataset)),
                                         {.batch_size = 10, .epochs = 60, .columns = columns});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  int64_t step = 0;
  while (const data::Batch* batch = (*pipeline)->Next())
    run.Step(batch->tensors[0].value, batch->tensors[1].value, step++);
  EXPECT_EQ(step, 600);
  EXPECT_NEAR(run.Variable("dense/kernel")[0], 2, 0.12);
  EXPECT_NEAR(run.Variable("dense/bias")[0], 10, 0.1);
}

}  // namespace
}  // namespace tfjob::model
