#include "runtime/model/build.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/model/layers/convolution.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/masking.h"
#include "runtime/model/layers/noise.h"
#include "runtime/model/layers/normalization.h"
#include "runtime/model/shape.h"

namespace tfjob::model {
namespace {

using layers::Dense;
using layers::Dropout;
using layers::Flatten;
using layers::Reshape;

Model Mlp() {
  return Sequential(
      "mlp", {{.name = "flatten", .config = Flatten{}},
              {.name = "dense", .config = Dense{.units = 4, .activation = ActivationKind::kRelu}},
              {.name = "dense_1", .config = Dense{.units = 3}}});
}

BuildOptions Options(Mode mode) {
  return {.mode = mode,
          .batch_size = 5,
          .features = Features({2, 2}),
          .objectives = {{.loss = {.from_logits = true}, .metrics = {Metric::kAccuracy}}}};
}

BuiltGraph MustBuild(const Model& model, const BuildOptions& options) {
  StatusOr<BuiltGraph> built = Build(model, options);
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

std::string Error(const Model& model, const BuildOptions& options) {
  const StatusOr<BuiltGraph> built = Build(model, options);
  return built.ok() ? "accepted" : std::string(Message(built.status()));
}

std::vector<std::string> Ops(const BuiltGraph& built) {
  std::vector<std::string> ops;
  for (const graph::Node& node : built.graph.nodes()) ops.push_back(node.op);
  return ops;
}
int64_t Count(const std::vector<std::string>& ops, const char* op) {
  return std::count(ops.begin(), ops.end(), op);
}

std::vector<std::string> FeedNames(const BuiltGraph& built) {
  std::vector<std::string> names;
  for (const graph::Node& node : built.graph.nodes()) {
    if (node.op == "Placeholder") names.push_back(node.name);
  }
  return names;
}
std::vector<std::string> FetchNames(const BuiltGraph& built) {
  std::vector<std::string> names;
  for (const graph::Fetch& fetch : built.graph.fetches()) names.push_back(fetch.name);
  return names;
}

TEST(Build, TrainingFeedsFetchesAndGradients) {
  const BuiltGraph built = MustBuild(Mlp(), Options(Mode::kTrain));
  EXPECT_EQ(FeedNames(built), (std::vector<std::string>{"features", "labels", "step", "seed"}));
  EXPECT_EQ(FetchNames(built),
            (std::vector<std::string>{"loss", "loss_sum", "accuracy_sum", "gradients/dense_1/bias",
                                      "gradients/dense_1/kernel", "gradients/dense/bias",
                                      "gradients/dense/kernel"}));
  ASSERT_EQ(built.contributions.size(), 4u);
  EXPECT_EQ(built.contributions[0].variable, "dense_1/bias");
  EXPECT_EQ(built.contributions[3].fetch, "gradients/dense/kernel");
  const graph::Fetch* kernel = built.graph.FindFetch("gradients/dense/kernel");
  EXPECT_EQ(built.graph.type(kernel->output).shape, Shape({4, 4}));
  ASSERT_EQ(built.variables.size(), 4u);
  EXPECT_EQ(built.variables[0].name, "dense/kernel");
  EXPECT_EQ(built.variables[0].shape, Shape({4, 4}));
  EXPECT_EQ(built.examples, 5);
}

// Every gradient depends on the weight of the loss, but the loss that is reported does not.
TEST(Build, TheWeightOfTheLossIsAFactorOfItsGradients) {
  BuildOptions options = Options(Mode::kTrain);
  options.weighted = true;
  const BuiltGraph built = MustBuild(Mlp(), options);
  std::vector<bool> depends;  // whether a node depends on the weight
  for (const graph::Node& node : built.graph.nodes()) {
    depends.push_back(node.name == kLossWeight);
    for (const graph::Output input : node.inputs)
      if (depends[static_cast<size_t>(input.node)]) depends.back() = true;
  }
  for (const graph::Fetch& fetch : built.graph.fetches()) {
    EXPECT_EQ(depends[static_cast<size_t>(fetch.output.node)], fetch.name.starts_with("gradients/"))
        << fetch.name;
  }
}

// In a graph with exchanges, the exchanges themselves apply the weights of the ranks.
TEST(Build, AGraphWithExchangesHasNoWeight) {
  BuildOptions options = Options(Mode::kTrain);
  options.weighted = true;
  Model model = Mlp();
  model.layers[1].config = layers::BatchNormalization{.synchronized = true};
  model.layers[2].config = Dense{.units = 3};
  EXPECT_EQ(FeedNames(MustBuild(model, options)),
            (std::vector<std::string>{"features", "labels", "step", "seed"}));
}

TEST(Build, EvaluationAndPredictionHaveWhatTheyNeed) {
  const BuiltGraph eval = MustBuild(Mlp(), Options(Mode::kEval));
  EXPECT_EQ(FeedNames(eval), (std::vector<std::string>{"features", "labels"}));
  EXPECT_EQ(FetchNames(eval),
            (std::vector<std::string>{"prediction", "loss", "loss_sum", "accuracy_sum"}));
  const BuiltGraph predict = MustBuild(Mlp(), Options(Mode::kPredict));
  EXPECT_EQ(FeedNames(predict), (std::vector<std::string>{"features"}));
  EXPECT_EQ(FetchNames(predict), (std::vector<std::string>{"prediction"}));
}

TEST(Build, AnOptimizerIsAppliedToEveryTrainableVariable) {
  BuildOptions options = Options(Mode::kTrain);
  options.optimizer = optimizer::Optimizer();
  const BuiltGraph built = MustBuild(Mlp(), options);
  EXPECT_EQ(Count(Ops(built), "ApplyOptimizer"), 4);
  EXPECT_TRUE(built.contributions.empty());
}

TEST(Build, FrozenLayersGetNoGradient) {
  Model model = Mlp();
  model.layers[1].trainable = false;
  const BuiltGraph built = MustBuild(model, Options(Mode::kTrain));
  ASSERT_EQ(built.contributions.size(), 2u);
  EXPECT_EQ(built.contributions[1].variable, "dense_1/kernel");
  EXPECT_FALSE(built.variables[0].trainable);
  model.layers[2].trainable = false;
  EXPECT_EQ(Error(model, Options(Mode::kTrain)),
            "the model has no trainable variables: there is nothing to train");
}

TEST(Build, VariablesFrozenByTheirNamesGetNoContribution) {
  Model model = Sequential("m", {{.name = "norm", .config = layers::BatchNormalization{}},
                                 {.name = "dense", .config = Dense{.units = 3}}});
  model.frozen = {{.pattern = "*/kernel"}, {.pattern = "norm/*_mean"}, {.pattern = "norm/gamma"}};
  BuildOptions options = Options(Mode::kTrain);
  options.features = Features({2});
  const BuiltGraph built = MustBuild(model, options);
  std::vector<std::string> changed;
  for (const Contribution& contribution : built.contributions)
    changed.push_back(contribution.variable);
  EXPECT_EQ(changed, (std::vector<std::string>{"norm/moving_variance", "dense/bias", "norm/beta"}));
  options.optimizer = optimizer::Optimizer();
  const BuiltGraph updating = MustBuild(model, options);
  EXPECT_EQ(Count(Ops(updating), "ApplyOptimizer"), 2);
  EXPECT_EQ(Count(Ops(updating), "Assign"), 1);
}

TEST(Build, ALayerThatIsCalledTwiceSharesItsVariables) {
  Model model{.layers = {{.name = "shared", .config = Dense{.units = 4}},
                         {.name = "flatten", .config = Flatten{}}}};
  model.calls = {
      {.layer = 1, .inputs = {}}, {.layer = 0, .inputs = {{0}}}, {.layer = 0, .inputs = {{1}}}};
  model.inputs = {0};
  model.outputs = {{2}};
  const BuiltGraph built = MustBuild(model, Options(Mode::kTrain));
  EXPECT_EQ(built.variables.size(), 2u);
  EXPECT_EQ(Count(Ops(built), "ReadVariable"), 2);
  EXPECT_GE(Count(Ops(built), "MatMul"), 4);
}

TEST(Build, DropoutIsInTrainingOnly) {
  const Model model = Sequential("m", {{.name = "dropout", .config = Dropout{.rate = 0.5}},
                                       {.name = "flatten", .config = Flatten{}},
                                       {.name = "dense", .config = Dense{.units = 3}}});
  EXPECT_EQ(Count(Ops(MustBuild(model, Options(Mode::kTrain))), "Dropout"), 1);
  EXPECT_EQ(Count(Ops(MustBuild(model, Options(Mode::kEval))), "Dropout"), 0);
}

TEST(Build, DropoutOfTasksThatShareASeedIsKeptApartByTheReplica) {
  const Model model = Sequential("m", {{.name = "flatten", .config = Flatten{}},
                                       {.name = "dense", .config = Dense{.units = 4}},
                                       {.name = "dropout", .config = Dropout{.rate = 0.5}},
                                       {.name = "dense_1", .config = Dense{.units = 3}}});
  BuildOptions options = Options(Mode::kTrain);
  options.replica = 2;
  int random = 0;
  const BuiltGraph built = MustBuild(model, options);
  for (const graph::Node& node : built.graph.nodes()) {
    if (!node.op.starts_with("Dropout")) continue;
    ++random;
    EXPECT_EQ(node.attributes.Get<int64_t>("replica", 0), 2) << node.op;
  }
  EXPECT_EQ(random, 2) << "forward and backward";
}

TEST(Build, ASoftmaxBeforeTheLossIsSkipped) {
  Model model = Mlp();
  model.layers[2].config = Dense{.units = 3, .activation = ActivationKind::kSoftmax};
  BuildOptions options = Options(Mode::kTrain);
  options.objectives[0].loss.from_logits = false;
  EXPECT_EQ(Count(Ops(MustBuild(model, options)), "Log"), 0)
      << "the loss is computed from the logits";
  model = Mlp();
  EXPECT_EQ(Count(Ops(MustBuild(model, options)), "Log"), 1)
      << "no softmax: these are probabilities";
}

TEST(Build, ASoftmaxOverEachStepIsSkippedToo) {
  for (const bool convolves : {false, true}) {
    const LayerConfig last =
        convolves
            ? LayerConfig(layers::Conv1D{.filters = 3, .activation = ActivationKind::kSoftmax})
            : LayerConfig(Dense{.units = 3, .activation = ActivationKind::kSoftmax});
    const Model model = Sequential("m", {{.name = "last", .config = last}});
    BuildOptions options = Options(Mode::kTrain);
    options.objectives[0].labels.shape = {2};
    for (const bool from_logits : {false, true}) {
      options.objectives[0].loss.from_logits = from_logits;
      const std::vector<std::string> ops = Ops(MustBuild(model, options));
      EXPECT_EQ(Count(ops, "Log"), 0) << convolves << from_logits;
      EXPECT_EQ(Count(ops, "ClipByValue"), 0) << convolves << from_logits;
    }
  }
}

// As in Keras, if the prediction is a softmax, the loss uses the inputs of the softmax as logits.
TEST(Build, FromLogitsDoesNotApplyASoftmaxTwice) {
  Model model = Mlp();
  model.layers[2].config = Dense{.units = 3, .activation = ActivationKind::kSoftmax};
  BuildOptions options = Options(Mode::kTrain);
  options.objectives[0].loss.from_logits = false;
  const std::string without = MustBuild(model, options).graph.ToString();
  options.objectives[0].loss.from_logits = true;
  EXPECT_EQ(MustBuild(model, options).graph.ToString(), without);
}

TEST(Build, LabelsOfAnotherLayoutAreErrors) {
  const Model model = Sequential("m", {{.name = "dense", .config = Dense{.units = 3}}});
  BuildOptions options = Options(Mode::kTrain);
  options.objectives[0] = {.loss = {.kind = LossKind::kMeanSquaredError}};
  options.objectives[0].labels = {DType::kFloat32, {2, 3}};
  EXPECT_EQ(Error(model, options), "accepted");
  for (const Shape& shape : {Shape{6}, Shape{2, 3, 1}, Shape{1, 2, 3}}) {
    options.objectives[0].labels.shape = shape;
    EXPECT_EQ(Error(model, options), "accepted") << shape.ToString();
  }
  options.objectives[0].labels.shape = {3, 2};
  EXPECT_EQ(Error(model, options),
            "after layer dense (Dense): mean_squared_error expects labels like its predictions, "
            "float32 of shape [2,3], got float32 of shape [3,2]");
}

TEST(Build, ErrorsNameLayersAndShapes) {
  const std::string logits =
      "after layer dense_1 (Dense): sparse_categorical_crossentropy expects ";
  Model flat = Mlp();
  flat.layers.erase(flat.layers.begin());
  flat = Sequential("m", flat.layers);
  EXPECT_EQ(Error(flat, Options(Mode::kTrain)),
            logits +
                "class numbers as labels, int64 of shape [2], got int64 of shape []; set "
                "data.labels to class");
  BuildOptions options = Options(Mode::kTrain);
  options.objectives[0].labels.dtype = DType::kFloat32;
  EXPECT_EQ(Error(Mlp(), options),
            logits +
                "class numbers as labels, int64 of shape [], got float32 of shape []; set "
                "data.labels to class");
  options.objectives[0].loss = {.kind = LossKind::kClippedCrossentropy};
  options.objectives[0].labels.shape = {4};
  EXPECT_EQ(Error(Mlp(), options),
            "after layer dense_1 (Dense): clipped_crossentropy expects labels like its "
            "predictions, float32 of shape "
            "[3], got float32 of shape [4]; set data.labels to one_hot");
  options.objectives[0].loss = {.kind = LossKind::kMeanSquaredError};
  EXPECT_EQ(Error(Mlp(), options).substr(0, 66),
            "after layer dense_1 (Dense): mean_squared_error expects labels lik");
  options.objectives[0].labels.shape = {3};
  options.objectives[0].metrics = {};
  EXPECT_EQ(Error(Mlp(), options), "accepted");
  Model bad = Mlp();
  bad.layers[1].config = Reshape{.target_shape = {3}};
  EXPECT_EQ(Error(bad, Options(Mode::kPredict)),
            "layer dense (Reshape) does not fit after layer flatten (Flatten): target_shape [3] "
            "does not hold the 4 "
            "elements of shape [4]");
}

TEST(LossNames, AreParsedWithSuggestions) {
  EXPECT_EQ(*ParseLoss("clipped_crossentropy"), LossKind::kClippedCrossentropy);
  EXPECT_EQ(*ParseMetric("accuracy"), Metric::kAccuracy);
  EXPECT_EQ(Message(ParseLoss("mean_square_error").status()),
            "loss mean_square_error is not supported; did you mean \"mean_squared_error\"?");
}

// Returns the error message from reading a metric.
std::string MetricError(const std::string& text) {
  const StatusOr<Json> json = ParseJson(text, "test");
  if (!json.ok()) return "no JSON";
  return std::string(Message(ReadMetric(JsonField(*json, "metrics[0]")).status()));
}

TEST(Metrics, ArgumentsAreRead) {
  const StatusOr<Json> json =
      ParseJson(R"({"name": "auc", "curve": "PR", "num_thresholds": 50, "as": "pr"})", "");
  ASSERT_TRUE(json.ok());
  const StatusOr<Metric> metric = ReadMetric(JsonField(*json));
  ASSERT_TRUE(metric.ok()) << metric.status();
  EXPECT_EQ(metric->curve, Metric::Curve::kPr);
  EXPECT_EQ(SumsOf(*metric, 1), 102);
  EXPECT_EQ(metric->given_name, "pr");
}

TEST(Metrics, NeedTheArgumentsWithoutDefaults) {
  EXPECT_EQ(MetricError(R"("f1_score")"),
            "metrics[0]: metric f1_score needs the argument average: micro, macro or weighted; "
            "Keras' default, a value for each class, is not supported");
  EXPECT_EQ(MetricError(R"({"name": "fbeta_score", "average": "samples"})"),
            "metric fbeta_score: metrics[0].average: expected micro, macro or weighted, got "
            "\"samples\"");
  EXPECT_EQ(MetricError(R"({"name": "recall_at_precision", "class_id": 1})"),
            "metrics[0]: metric recall_at_precision needs the argument precision");
  EXPECT_EQ(
      MetricError(R"({"name": "precision_at_recall", "recall": 1.5})"),
      "metric precision_at_recall: metrics[0].recall: expected a number from 0 to 1, got 1.5");
  EXPECT_EQ(MetricError(R"("mean_io_u")"),
            "metrics[0]: metric mean_io_u needs the argument num_classes");
  EXPECT_EQ(MetricError(R"({"name": "one_hot_io_u", "num_classes": 3})"),
            "metrics[0]: metric one_hot_io_u needs the argument target_class_ids");
  EXPECT_EQ(MetricError(R"({"name": "binary_io_u", "target_class_ids": [0, 2]})"),
            "metrics[0]: metric binary_io_u: target_class_ids contains 2, but there are 2 classes, "
            "from 0");
  EXPECT_NE(MetricError(R"({"name": "mean_io_u", "num_classes": 3, "sparse_y_true": false})")
                .find("set sparse_y_pred to false"),
            std::string::npos);
  EXPECT_EQ(MetricError(R"("mean_iou")"),
            "metrics[0]: metric mean_iou is not supported; did you mean \"mean_io_u\"?");
}

TEST(Metrics, SumsAreOfEachClass) {
  const auto sums = [](const std::string& text) {
    const Json json = *ParseJson(text, "");
    const StatusOr<Metric> metric = ReadMetric(JsonField(json));
    return metric.ok() ? SumsOf(*metric, 5) : 0;
  };
  EXPECT_EQ(sums(R"({"name": "f1_score", "average": "micro"})"), 4);
  EXPECT_EQ(sums(R"({"name": "f1_score", "average": "macro"})"), 4 * 5);
  EXPECT_EQ(sums(R"({"name": "mean_io_u", "num_classes": 7})"), 3 * 7);
  EXPECT_EQ(sums(R"("binary_io_u")"), 3 * 2);
  EXPECT_EQ(sums(R"({"name": "precision_at_recall", "recall": 0.5, "num_thresholds": 9})"), 4 * 9);
  EXPECT_EQ(sums(R"("pearson_correlation")"), 1);
}

TEST(Metrics, ThresholdsOfACurveAreSortedAndDetermineItsSums) {
  const Json json = *ParseJson(R"({"name": "auc", "thresholds": [0.7, 0.2, 0.5]})", "");
  const StatusOr<Metric> metric = ReadMetric(JsonField(json));
  ASSERT_TRUE(metric.ok()) << metric.status();
  EXPECT_EQ(metric->thresholds, (std::vector<double>{0.2, 0.5, 0.7}));
  EXPECT_EQ(SumsOf(*metric, 1), 2 * 5 + 2) << "with both ends";
  EXPECT_EQ(PerThreshold(*metric), std::vector<Metric>{*metric});
}

TEST(Metrics, AMetricWithSeveralThresholdsHasAValueForEach) {
  const Json json = *ParseJson(R"([{"name": "precision", "thresholds": [0.25, 0.5]},
                     {"name": "recall", "thresholds": [0.7, 1], "as": "found"}])",
                               "");
  BuildOptions options = Options(Mode::kEval);
  options.objectives[0].metrics.clear();
  for (const size_t i : {0u, 1u})
    options.objectives[0].metrics.push_back(*ReadMetric(JsonField(json)[i]));
  std::vector<std::string> names;
  for (const MetricFetch& metric : MetricsOf(Mlp(), options)) {
    names.push_back(metric.name);
    EXPECT_EQ(metric.metric.thresholds.size(), 1u);
    EXPECT_EQ(metric.sums, 2);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"precision_at_0.25", "precision_at_0.5",
                                             "found_at_0.7", "found_at_1"}));
}

TEST(Metrics, CrossEntropiesSumTheCountOfPlacesIfTheLossIgnoresAClass) {
  BuildOptions options = Options(Mode::kEval);
  options.objectives[0].loss.ignore_class = -1;
  options.objectives[0].metrics = {LossKind::kSparseCategoricalCrossentropy, Metric::kPerplexity,
                                   Metric::kAccuracy};
  std::vector<int64_t> sums;
  for (const MetricFetch& metric : MetricsOf(Mlp(), options)) sums.push_back(metric.sums);
  EXPECT_EQ(sums, (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(Error(Mlp(), options), "accepted");
}

TEST(Metrics, ErrorsNameTheMetricAndTheArgument) {
  EXPECT_EQ(MetricError(R"({"name": "auc", "num_threshold": 3})"),
            "metrics[0].num_threshold: argument num_threshold of metric auc is not supported; did "
            "you mean \"num_thresholds\"?");
  EXPECT_EQ(MetricError(R"({"name": "accuracy", "k": 3})"),
            "metrics[0].k: argument k of metric accuracy is not supported; known: as");
  EXPECT_EQ(MetricError(R"({"name": "accuracy", "as": ""})"),
            "metric accuracy: metrics[0].as: expected a name of 1 to 200 printable characters, got "
            "\"\"");
  EXPECT_EQ(MetricError(R"({"name": "top_k_categorical_accuracy", "k": 0})"),
            "metric top_k_categorical_accuracy: metrics[0].k: expected an integer from 1 to "
            "1073741824, got 0");
  EXPECT_EQ(MetricError(R"({"name": "precision", "thresholds": []})"),
            "metric precision: metrics[0].thresholds: expected a number, or a list of 1 to 1000 "
            "numbers, got a list");
  EXPECT_EQ(MetricError(R"({"name": "auc", "thresholds": [0.5, 1.5]})"),
            "metric auc: metrics[0].thresholds[1]: expected a number from 0 to 1, got 1.5");
  EXPECT_EQ(MetricError(R"({"name": "recall", "top_k": 0})"),
            "metric recall: metrics[0].top_k: expected an integer from 1 to 1000, got 0");
  Metric precision = Metric::kPrecision;
  precision.top_k = 4;
  EXPECT_EQ(Message(CheckMetric(precision, {3}, DType::kFloat32, {3})),
            "metric precision: top_k is 4, but the output has only 3 classes");
  EXPECT_EQ(MetricError(R"({"name": "auc", "curve": "ROCK"})"),
            "metric auc: metrics[0].curve: expected ROC or PR, got \"ROCK\"");
  Metric recall = Metric::kRecall;
  recall.class_id = 3;
  EXPECT_EQ(Message(CheckMetric(recall, {3}, DType::kFloat32, {3})),
            "metric recall: class_id is 3, but the output has 3 classes, from 0");
}

// With a mask or a weight for each step, the loss must have a value for each step.
TEST(Build, ALossOfWholeExamplesRefusesMasksAndWeightsOfSteps) {
  Model model = Sequential("m", {{.name = "masking", .config = layers::Masking{}},
                                 {.name = "dense", .config = Dense{.units = 4}}});
  BuildOptions options{.mode = Mode::kTrain, .batch_size = 5, .features = Features({3, 2})};
  options.objectives = {{.loss = {.kind = LossKind::kCtc}, .labels = {DType::kInt64, {2}}}};
  EXPECT_EQ(Error(model, options),
            "loss ctc: expected a value for each place, because the prediction has a mask for each "
            "place, of shape [5,3] in a batch, got values of shape [5]; change the model, or "
            "remove the mask or the weights");
  model = Sequential("m", {{.name = "dense", .config = Dense{.units = 4}}});
  EXPECT_EQ(Error(model, options), "accepted");
  options.objectives[0].sample_weights = Shape({3});
  EXPECT_EQ(Error(model, options),
            "loss ctc: expected a value for each place, because the data have sample weights or "
            "class weights for each place, of shape [5,3] in a batch, got values of shape [5]; "
            "change the model, or remove the mask or the weights");
}

TEST(Build, NoiseOfAnotherBatchSizeIsRefused) {
  const Dropout drop{.rate = 0.5, .noise_shape = {4, 1}};
  const Model model = Sequential("m", {{.name = "flatten", .config = Flatten{}},
                                       {.name = "dense", .config = Dense{.units = 3}},
                                       {.name = "drop", .config = drop}});
  const std::string error = Error(model, Options(Mode::kTrain));
  EXPECT_NE(error.find("noise_shape: expected null, 1 or the batch size, 5, as its first size, got "
                       "4"),
            std::string::npos)
      << error;
  EXPECT_EQ(Error(model, Options(Mode::kEval)), "accepted");
}

}  // namespace
}  // namespace tfjob::model
