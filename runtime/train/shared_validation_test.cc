// Validates during training with several tasks that share batches (Trainer::Validate). The tasks
// are threads of one process, connected over loopback.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/config/training_config.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/run_guest.h"
#include "runtime/train/test_job.h"
#include "runtime/train/trainer.h"

namespace tfjob::train {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

// Validates after every second step, with the other tasks, and compares the result with that of an
// evaluation of all examples in this task.
class Validator : public RunGuest {
 public:
  Validator(TaskContext& context, std::shared_ptr<const data::Source> source)
      : context_(context), source_(std::move(source)) {}

  Status OnStart(Trainer& run) override {
    ASSIGN_OR_RETURN(const exec::Device device, context_.device());
    for (auto* evaluation : {&shared_, &alone_}) {
      ASSIGN_OR_RETURN(*evaluation,
                       Evaluation::Create(context_.config(), run.definition(), source_, device));
    }
    return OkStatus();
  }
  Status OnStep(Trainer& run, const strategy::MetricTotals&,
                const strategy::StepOutcome& outcome) override {
    if (outcome.global_step % 2 != 0 || outcome.dropped) return OkStatus();
    if (before) before(outcome.global_step);
    ASSIGN_OR_RETURN(const state::Snapshot snapshot, run.strategy().TakeSnapshot());
    const auto validated = run.Validate(*shared_, snapshot);
    // The run itself stops the task.
    if (absl::IsCancelled(validated.status()) && context_.stop().requested()) return OkStatus();
    ASSIGN_OR_RETURN(const auto totals, validated);
    if (!totals) return OkStatus();
    ++validations;
    ASSIGN_OR_RETURN(const strategy::MetricTotals expected, alone_->Run(snapshot, context_.stop()));
    Expect(NamedValues(shared_->definition(), *totals),
           NamedValues(alone_->definition(), expected));
    EXPECT_EQ(totals->examples, expected.examples);
    return OkStatus();
  }
  Status OnEnd(Trainer&) override { return OkStatus(); }

  std::function<void(int64_t step)> before;
  int validations = 0;

 private:
  static void Expect(const Values& got, const Values& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i].second, expected[i].second, 1e-9 * (1 + std::abs(expected[i].second)))
          << got[i].first;
    }
  }

  TaskContext& context_;
  const std::shared_ptr<const data::Source> source_;
  std::unique_ptr<Evaluation> shared_, alone_;
};

class SharedValidationTest : public testing::Test, public TestCluster {
 protected:
  static config::TrainingConfig Config(
      const std::string& more,
      const std::string& strategy = "strategy: {name: multi_worker_mirrored}") {
    const std::string text = StrCat(R"(
optimizer: {name: adam, learning_rate: 0.05}
data: {train: {format: linear, weights: [1.0], bias: 0.0, examples: 1}}
threads: 1
seed: 5
global_batch_size: 12
max_steps: 6
)",
                                    more, strategy, "\n");
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }

  // Returns examples with two features. `labels` maps them to a label.
  static std::map<std::string, Tensor> Examples(int64_t count, DType dtype,
                                                double (*label)(double, double)) {
    Tensor x(DType::kFloat32, {count, 2}), y(dtype, {count});
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const double a = std::sin(static_cast<double>(7 * i)), b = std::cos(static_cast<double>(i));
      x.data<float>()[2 * i] = static_cast<float>(a);
      x.data<float>()[2 * i + 1] = static_cast<float>(b);
      if (dtype == DType::kInt64) {
        y.data<int64_t>()[i] = static_cast<int64_t>(label(a, b));
      } else {
        y.data<float>()[i] = static_cast<float>(label(a, b));
      }
    }
    return {{"x", std::move(x)}, {"y", std::move(y)}};
  }

  // Runs three tasks. `prepare` may change the guest of a task before it starts.
  void Train(const config::TrainingConfig& config, DType dtype, double (*label)(double, double),
             int64_t validation, const std::function<void(int, Validator&)>& prepare = nullptr) {
    const std::vector<Task> tasks = {{"chief", 0}, {"worker", 0}, {"worker", 1}};
    const auto model = std::make_shared<const model::Model>(*ReadModel(config.model));
    const auto train = *ArraySource({}, Split::kTrain, *model, Examples(50, dtype, label));
    const auto eval = *ArraySource({}, Split::kEval, *model, Examples(validation, dtype, label));
    std::vector<std::thread> threads;
    std::vector<cluster::TfConfig> clusters;
    for (const Task& task : tasks) clusters.push_back(Static(task, tasks));
    statuses_.resize(tasks.size());
    for (size_t i = 0; i < tasks.size(); ++i) {
      threads.emplace_back([&, i] {
        TaskOptions options{.config = config, .tf_config = clusters[i], .job = {"uid", 0}};
        options.inputs = {.model = model, .train = train, .eval = nullptr};
        TaskContext context(std::move(options), stops_[i], RealClock());
        Validator guest(context, eval);
        if (prepare) prepare(static_cast<int>(i), guest);
        statuses_[i] = RunTraining(context, &guest);
        validations_[i] = guest.validations;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  StopSource stops_[3];
  std::vector<Status> statuses_;
  int validations_[3] = {};
};

// There are 37 examples in 8 batches, so the parts have 3, 3 and 2 batches.
TEST_F(SharedValidationTest, EqualsTheEvaluationOfAllExamplesInOneTask) {
  Train(
      Config(R"(
model:
  layers:
  - Dense: {units: 4, activation: relu}
  - BatchNormalization: {momentum: 0.5}
  - Dense: {units: 1, activation: sigmoid, kernel_regularizer: {L2: {l2: 0.01}}}
loss: binary_crossentropy
metrics:
- binary_accuracy
- auc
- {name: auc, curve: PR, as: pr}
- precision
- recall
- false_positives
- mean_absolute_error
- root_mean_squared_error
eval: {batch_size: 5}
)"),
      DType::kFloat32, [](double a, double b) { return a + b > 0 ? 1.0 : 0.0; }, 37);
  for (int task = 0; task < 3; ++task) {
    EXPECT_TRUE(statuses_[static_cast<size_t>(task)].ok()) << statuses_[static_cast<size_t>(task)];
    EXPECT_EQ(validations_[task], 3);
  }
}

// There are two batches, so one of the three tasks has nothing to evaluate.
TEST_F(SharedValidationTest, APartMayBeEmpty) {
  Train(
      Config(R"(
model: {layers: [{Dense: {units: 5, activation: softmax}}]}
loss: sparse_categorical_crossentropy
metrics: [accuracy, {name: sparse_top_k_categorical_accuracy, k: 2}, perplexity]
eval: {batch_size: 32}
)"),
      DType::kInt64, [](double a, double b) { return std::floor(a + b) + 2; }, 37);
  for (int task = 0; task < 3; ++task) {
    EXPECT_TRUE(statuses_[static_cast<size_t>(task)].ok()) << statuses_[static_cast<size_t>(task)];
    EXPECT_EQ(validations_[task], 3);
  }
}

// Worker 1 is asked to stop at the beginning of the second validation. The other workers repeat it,
// and continue to train without worker 1.
TEST_F(SharedValidationTest, TheOthersRepeatItWithoutATaskThatStops) {
  const std::string folder = testing::TempDir() + "/shared_validation_test";
  std::filesystem::remove_all(folder);
  Train(
      Config(StrCat(R"(
model: {layers: [{Dense: {units: 1}}]}
loss: mean_squared_error
metrics: [mean_absolute_error]
eval: {batch_size: 5}
model_dir: )",
                    folder, "\n"),
             "strategy: {name: multi_worker_mirrored, on_failure: shrink}"),
      DType::kFloat32, [](double a, double b) { return a - b; }, 37,
      [this](int task, Validator& guest) {
        if (task != 2) return;
        guest.before = [this](int64_t step) {
          if (step == 4) stops_[2].Request(SIGTERM);
        };
      });
  for (const size_t task : {0, 1}) {
    EXPECT_TRUE(statuses_[task].ok()) << statuses_[task];
    EXPECT_EQ(validations_[task], 3);
  }
  EXPECT_TRUE(absl::IsCancelled(statuses_[2])) << statuses_[2];
  EXPECT_EQ(validations_[2], 1);
}

}  // namespace
}  // namespace tfjob::train
