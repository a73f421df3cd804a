// Compares losses and metrics with plain loops for sequences, several outputs and weighted
// examples.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/model/layers/activations.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

constexpr int64_t kExamples = 3, kSteps = 2, kClasses = 4;

// Runs a model without variables in the mode kEval. Get() returns an element of a fetched value.
class EvalRun {
 public:
  EvalRun(const Model& model, BuildOptions options, const std::vector<Tensor>& feeds) {
    options.mode = Mode::kEval;
    options.batch_size = kExamples;
    const StatusOr<BuiltGraph> built = Build(model, options);
    EXPECT_TRUE(built.ok()) << built.status();
    if (!built.ok()) return;
    auto program = exec::Compile(built->graph, store_, TestDevice());
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    std::vector<exec::Feed> fed;
    for (const Tensor& feed : feeds) fed.push_back(exec::Feed::Of(feed));
    EXPECT_EQ(program_->Run(fed), OkStatus());
  }
  double Get(const std::string& fetch, size_t i = 0) const {
    return static_cast<double>(program_->Fetch<float>(program_->FindFetch(fetch))[i]);
  }

 private:
  variables::VariableStore store_ = TestStore();
  std::unique_ptr<exec::Program> program_;
};

Model Identity() {
  return Sequential("m", {{.name = "linear", .config = layers::Activation{}}});
}

float Score(int64_t place, int64_t c) {
  return static_cast<float>((place * 7 + c * 5) % 11) * 0.3f - 1;
}

int64_t Label(int64_t place) {
  return (place * 3 + 1) % kClasses;
}

float Weight(int64_t place) {
  return 0.5f + static_cast<float>(place % 3);
}

double CrossEntropy(int64_t place) {
  double sum = 0;
  for (int64_t c = 0; c < kClasses; ++c) sum += std::exp(static_cast<double>(Score(place, c)));
  return std::log(sum) - static_cast<double>(Score(place, Label(place)));
}

bool Hit(int64_t place) {
  for (int64_t c = 0; c < kClasses; ++c) {
    if (Score(place, c) > Score(place, Label(place))) return false;
  }
  return true;
}

Tensor Scores() {
  Tensor scores(DType::kFloat32, {kExamples, kSteps, kClasses});
  for (int64_t i = 0; i < scores.num_elements(); ++i)
    scores.data<float>()[static_cast<size_t>(i)] = Score(i / kClasses, i % kClasses);
  return scores;
}

Tensor Classes() {
  Tensor labels(DType::kInt64, {kExamples, kSteps});
  for (int64_t i = 0; i < labels.num_elements(); ++i)
    labels.data<int64_t>()[static_cast<size_t>(i)] = Label(i);
  return labels;
}

Tensor OneHotRows() {
  Tensor labels(DType::kFloat32, {kExamples, kSteps, kClasses});
  for (int64_t i = 0; i < kExamples * kSteps; ++i)
    labels.data<float>()[static_cast<size_t>(i * kClasses + Label(i))] = 1;
  return labels;
}

BuildOptions Options(LossKind kind, bool from_logits, TensorType labels) {
  return {.features = {{DType::kFloat32, {kSteps, kClasses}}},
          .objectives = {{.loss = {.kind = kind, .from_logits = from_logits},
                          .metrics = {Metric::kAccuracy},
                          .labels = std::move(labels)}}};
}

TEST(Objectives, EveryStepOfASequenceHasALabel) {
  double sum = 0, hits = 0;
  for (int64_t place = 0; place < kExamples * kSteps; ++place) {
    sum += CrossEntropy(place) / kSteps;
    hits += Hit(place) ? 1.0 / kSteps : 0;
  }
  ASSERT_GT(hits, 0);
  ASSERT_LT(hits, kExamples);
  const EvalRun sparse(
      Identity(),
      Options(LossKind::kSparseCategoricalCrossentropy, true, {DType::kInt64, {kSteps}}),
      {Scores(), Classes()});
  EXPECT_NEAR(sparse.Get(kLossSum), sum, 1e-5);
  EXPECT_NEAR(sparse.Get(kLoss), sum / kExamples, 1e-5);
  EXPECT_NEAR(sparse.Get("accuracy_sum"), hits, 1e-6);
  const EvalRun rows(
      Identity(),
      Options(LossKind::kCategoricalCrossentropy, true, {DType::kFloat32, {kSteps, kClasses}}),
      {Scores(), OneHotRows()});
  EXPECT_NEAR(rows.Get(kLossSum), sum, 1e-5);
  EXPECT_NEAR(rows.Get("accuracy_sum"), hits, 1e-6);
}

// As in Keras, the sum of the weighted losses is divided by the number of places, not by the sum of
// the weights.
TEST(Objectives, WeightsOfExamplesAndOfPlacesMultiplyTheLoss) {
  BuildOptions options =
      Options(LossKind::kSparseCategoricalCrossentropy, true, {DType::kInt64, {kSteps}});
  for (const bool by_place : {false, true}) {
    SCOPED_TRACE(by_place);
    options.objectives[0].sample_weights = by_place ? Shape{kSteps} : Shape{};
    Tensor weights(DType::kFloat32, by_place ? Shape{kExamples, kSteps} : Shape{kExamples});
    for (int64_t i = 0; i < weights.num_elements(); ++i)
      weights.data<float>()[static_cast<size_t>(i)] = Weight(i);
    double sum = 0;
    for (int64_t place = 0; place < kExamples * kSteps; ++place) {
      const int64_t weighted = by_place ? place : place / kSteps;
      sum += CrossEntropy(place) * static_cast<double>(Weight(weighted));
    }
    for (const bool total : {false, true}) {
      options.objectives[0].loss.sum = total;
      const EvalRun run(Identity(), options, {Scores(), Classes(), weights});
      EXPECT_NEAR(run.Get(kLoss), total ? sum : sum / (kExamples * kSteps), 1e-5);
    }
  }
  options.objectives[0].sample_weights = Shape{kSteps + 1};
  const Status status = Build(Identity(), options).status();
  EXPECT_NE(Message(status).find("expected sample weights of shape [] or [2], got [3]"),
            std::string::npos)
      << status;
}

TEST(Objectives, LossesOfSeveralOutputsAreReportedAndAddedUpByWeight) {
  Model model{.layers = {{.name = "in", .config = layers::Activation{}},
                         {.name = "a", .config = layers::Activation{}},
                         {.name = "b", .config = layers::Activation{}}},
              .sequential = false};
  model.calls = {
      {.layer = 0, .inputs = {}}, {.layer = 1, .inputs = {{0}}}, {.layer = 2, .inputs = {{0}}}};
  model.inputs = {0};
  model.outputs = {{1}, {2}};
  BuildOptions options{.batch_size = kExamples, .features = {{DType::kFloat32, {2}}}};
  const Objective squares{.loss = {.kind = LossKind::kMeanSquaredError},
                          .labels = {DType::kFloat32, {2}}};
  options.objectives = {squares, squares};
  options.objectives[0].weight = 0.5;
  options.objectives[1].metrics = {LossKind::kMeanSquaredError};
  std::vector<std::string> names;
  for (const MetricFetch& metric : MetricsOf(model, options)) names.push_back(metric.name);
  EXPECT_EQ(names, std::vector<std::string>({"a_loss", "b_loss", "b_mean_squared_error"}));
  const Tensor x = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor zeros(DType::kFloat32, {3, 2});
  const Tensor ones = Tensor::Of<float>({3, 2}, {1, 1, 1, 1, 1, 1});
  const EvalRun run(model, options, {x, zeros, ones});
  const double a = (1 + 4 + 9 + 16 + 25 + 36) / 2.0, b = (0 + 1 + 4 + 9 + 16 + 25) / 2.0;
  EXPECT_NEAR(run.Get("a_loss_sum"), a, 1e-4);
  EXPECT_NEAR(run.Get("b_loss_sum"), b, 1e-4);
  EXPECT_NEAR(run.Get("b_mean_squared_error_sum"), b, 1e-4);
  EXPECT_NEAR(run.Get(kLossSum), 0.5 * a + b, 1e-4);
}

// Unlike the loss, the mean of a weighted metric is divided by the sum of the weights.
TEST(Objectives, WeightedMetricsUseTheWeightsAndPlainOnesDoNot) {
  BuildOptions options =
      Options(LossKind::kSparseCategoricalCrossentropy, true, {DType::kInt64, {kSteps}});
  options.objectives[0].weighted_metrics = {Metric::kAccuracy, Metric::kPerplexity};
  for (const bool by_place : {false, true}) {
    SCOPED_TRACE(by_place);
    options.objectives[0].sample_weights = by_place ? Shape{kSteps} : Shape{};
    Tensor weights(DType::kFloat32, by_place ? Shape{kExamples, kSteps} : Shape{kExamples});
    for (int64_t i = 0; i < weights.num_elements(); ++i)
      weights.data<float>()[static_cast<size_t>(i)] = Weight(i);
    double hits = 0, weighted = 0, entropy = 0, total = 0;
    for (int64_t place = 0; place < kExamples * kSteps; ++place) {
      const auto weight = static_cast<double>(Weight(by_place ? place : place / kSteps));
      hits += Hit(place) ? 1.0 / kSteps : 0;
      weighted += Hit(place) ? weight / kSteps : 0;
      entropy += CrossEntropy(place) * weight / kSteps;
      total += weight / kSteps;
    }
    const EvalRun run(Identity(), options, {Scores(), Classes(), weights});
    EXPECT_NEAR(run.Get("accuracy_sum"), hits, 1e-5);
    EXPECT_NEAR(run.Get("weighted_accuracy_sum"), weighted, 1e-5);
    EXPECT_NEAR(run.Get("weighted_accuracy_sum", 1), total, 1e-5);
    EXPECT_NEAR(run.Get("perplexity_sum"), entropy, 1e-5);
    EXPECT_NEAR(run.Get("perplexity_sum", 1), total, 1e-5);
  }
  options.objectives[0].sample_weights.reset();
  for (const MetricFetch& metric : MetricsOf(Identity(), options)) EXPECT_EQ(metric.sums, 1);
}

TEST(Objectives, NamesOfMetricsAreMadeUniqueAsInKeras) {
  Metric loss = Metric::kRecall, pr = Metric::kAuc;
  loss.given_name = "loss";
  pr.given_name = "pr";
  const auto names = [](const BuildOptions& options) {
    std::string text;
    for (const MetricFetch& metric : MetricsOf(Identity(), options)) {
      EXPECT_EQ(metric.fetch, metric.name + "_sum");
      text += metric.name + " ";
    }
    return text;
  };
  BuildOptions options = Options(LossKind::kMeanSquaredError, false, {DType::kFloat32, {2}});
  options.objectives[0].metrics = {Metric::kAuc, pr, Metric::kAuc, loss};
  options.objectives[0].weighted_metrics = {Metric::kRecall, pr, Metric::kAuc, pr};
  EXPECT_EQ(names(options), "auc pr auc_1 loss_1 recall weighted_pr weighted_auc weighted_pr_1 ");
}

}  // namespace
}  // namespace tfjob::model
