// Compares Fit with a run that a training file describes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "runtime/api/access.h"
#include "runtime/api/custom_layer.h"
#include "runtime/api/custom_loss.h"
#include "runtime/api/layers.h"
#include "runtime/api/losses.h"
#include "runtime/api/ops.h"
#include "runtime/api/optimizers.h"
#include "runtime/io/npy.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "runtime/train/task.h"
#include "runtime/wire/test_address.h"

namespace tfjob::api {
namespace {

constexpr int64_t kExamples = 70;

tfjob::Tensor Features() {
  tfjob::Tensor x(tfjob::DType::kFloat32, {kExamples, 3});
  for (size_t i = 0; i < x.data<float>().size(); ++i)
    x.data<float>()[i] = static_cast<float>((i * 37 + 11) % 100) / 100;
  return x;
}

tfjob::Tensor Classes() {
  tfjob::Tensor y(tfjob::DType::kInt64, {kExamples});
  for (size_t i = 0; i < y.data<int64_t>().size(); ++i)
    y.data<int64_t>()[i] = static_cast<int64_t>(i * 7 % 4);
  return y;
}

// Trains as a training file describes, and returns the variables of the last checkpoint.
StatusOr<state::Snapshot> OfTrainer(const std::string& folder) {
  RETURN_IF_ERROR(io::WriteNpy(folder + "/x.npy", Features()));
  RETURN_IF_ERROR(io::WriteNpy(folder + "/y.npy", Classes()));
  ASSIGN_OR_RETURN(
      const config::TrainingConfig config,
      config::ParseTrainingConfig(
          StrCat("model: {layers: [{Dense: {units: 8, activation: relu}}, {Dropout: "
                 "{rate: 0.25}}, {Dense: {units: 4}}]}\n"
                 "loss: {name: sparse_categorical_crossentropy, from_logits: true}\n"
                 "optimizer: {name: adam, learning_rate: 0.01}\n"
                 "data: {train: {format: npz, inputs: ",
                 folder, "/x.npy, targets: ", folder, "/y.npy}}\n",
                 "batch_size: 16\nepochs: 3\nseed: 5\nthreads: 1\nmodel_dir: ", folder, "/run\n"),
          "training.yaml"));
  RETURN_IF_ERROR(config::Validate(config));
  StopSource stop;
  train::TaskContext context({.config = config}, stop, RealClock());
  RETURN_IF_ERROR(train::RunTask(context));
  ASSIGN_OR_RETURN(const auto source, train::LoadDataset(config, train::Split::kTrain));
  ASSIGN_OR_RETURN(const auto definition,
                   train::DefineModel(config, train::Split::kTrain, *source, 1));
  ASSIGN_OR_RETURN(auto saved, train::LoadLatestCheckpoint(folder + "/run", definition.state));
  return *std::move(saved);
}

TEST(Fit, TakesTheStepsOfTheTrainer) {
  const std::string folder = testing::TempDir();
  const StatusOr<state::Snapshot> expected = OfTrainer(folder);
  ASSERT_TRUE(expected.ok()) << expected.status();

  const Session session(Strategy::OneDevice(), {.seed = 5, .threads = 1});
  CompiledModel model = session
                            .Compile(Sequential({Dense{.units = 8, .activation = "relu"},
                                                 Dropout{.rate = 0.25}, Dense{.units = 4}}),
                                     {.optimizer = Adam{.learning_rate = 0.01},
                                      .loss = SparseCategoricalCrossentropy{.from_logits = true}})
                            .value();
  const Dataset data =
      data::Arrays{.x = Access::MakeTensor(Features()), .y = Access::MakeTensor(Classes())};
  const auto history =
      model.Fit(data, {.batch_size = 16, .epochs = 3, .verbose = Verbose::kSilent});
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(model.step(), expected->global_step);
  const auto weights = model.Weights().value();
  ASSERT_EQ(weights.size(), expected->variables.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto got = weights[i].second.bytes(), want = expected->variables[i].value.bytes();
    EXPECT_TRUE(std::ranges::equal(got, want)) << weights[i].first;
  }

  // Training on the same examples in files produces the same values.
  CompiledModel from_files =
      session
          .Compile(Sequential({Dense{.units = 8, .activation = "relu"}, Dropout{.rate = 0.25},
                               Dense{.units = 4}}),
                   {.optimizer = Adam{.learning_rate = 0.01},
                    .loss = SparseCategoricalCrossentropy{.from_logits = true}})
          .value();
  const data::Npz files = {.inputs = {{"", folder + "/x.npy"}},
                           .targets = {{"", folder + "/y.npy"}}};
  const auto again =
      from_files.Fit(files, {.batch_size = 16, .epochs = 3, .verbose = Verbose::kSilent});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->values, history->values);
}

// Returns the strategy that FromEnvironment would return in one of two tasks.
Strategy TaskOfTwo(const std::vector<std::string>& addresses, int index) {
  cluster::Job workers{.name = "worker", .addresses = {}};
  for (int i = 0; i < 2; ++i) workers.addresses[i] = addresses[static_cast<size_t>(i)];
  StrategyData data;
  data.tf_config.cluster.jobs = {workers};
  data.tf_config.task = {"worker", index};
  data.job = {"uid", 0};
  return Access::MakeStrategy(std::move(data));
}

CompiledModel CompiledFor(const Strategy& strategy) {
  return Session(strategy, {.seed = 5, .threads = 1})
      .Compile(Sequential({Dense{.units = 8, .activation = "relu"}, Dense{.units = 4}}),
               {.optimizer = Adam{.learning_rate = 0.01},
                .loss = SparseCategoricalCrossentropy{.from_logits = true}})
      .value();
}

Dataset ArraysOfTest() {
  return data::Arrays{.x = Access::MakeTensor(Features()), .y = Access::MakeTensor(Classes())};
}

// Calls Fit in two tasks, each with its own options.
std::vector<Result<History>> FitBoth(std::vector<CompiledModel>& tasks, const Dataset& data,
                                     const std::vector<FitOptions>& options) {
  std::vector<Result<History>> histories(2, Status(StatusCode::kUnknown, "not run"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] { histories[i] = tasks[i].Fit(data, options[i]); });
  for (std::thread& thread : threads) thread.join();
  return histories;
}

std::vector<CompiledModel> CompiledForTwo() {
  const std::vector<std::string> addresses = {wire::TestAddress(), wire::TestAddress()};
  std::vector<CompiledModel> tasks;
  for (int i = 0; i < 2; ++i) tasks.push_back(CompiledFor(TaskOfTwo(addresses, i)));
  return tasks;
}

class TwoTasks : public testing::TestWithParam<int64_t> {};

TEST_P(TwoTasks, TrainLikeOneWithTheWholeBatch) {
  const Dataset data = ArraysOfTest();
  const FitOptions options = {.batch_size = GetParam(), .epochs = 3, .verbose = Verbose::kSilent};
  CompiledModel alone = CompiledFor(Strategy::OneDevice());
  const History whole = alone.Fit(data, options).value();

  std::vector<CompiledModel> tasks = CompiledForTwo();
  const auto histories = FitBoth(tasks, data, {options, options});
  const auto expected = alone.Weights().value();
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(histories[i].ok()) << histories[i].status();
    // The metrics are those of the whole batches, so they are equal in both tasks.
    EXPECT_EQ(histories[i]->values, histories[0]->values);
    EXPECT_NEAR(histories[i]->values.at("loss")[2], whole.values.at("loss")[2], 1e-5);
    EXPECT_EQ(tasks[i].step(), alone.step());
    const auto weights = tasks[i].Weights().value();
    for (size_t v = 0; v < weights.size(); ++v) {
      for (int64_t e = 0; e < weights[v].second.size(); ++e) {
        const auto element = static_cast<size_t>(e);
        EXPECT_NEAR(weights[v].second.float32()[element], expected[v].second.float32()[element],
                    1e-5);
      }
    }
  }
  EXPECT_EQ(tasks[0].Evaluate(data).value().values(), tasks[1].Evaluate(data).value().values());
  // A task can take part in only one run, even if a second run trains another model.
  CompiledModel copy = tasks[0];
  EXPECT_EQ(tasks[0].Fit(data, options).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(copy.Fit(data, options).status().code(), StatusCode::kUnimplemented);
}

// With batches of 15, the two tasks get parts of different sizes.
INSTANTIATE_TEST_SUITE_P(Batches, TwoTasks, testing::Values(16, 15));

TEST(Fit, OfTwoTasksRefusesABatchThatCannotBeDivided) {
  std::vector<CompiledModel> tasks = CompiledForTwo();
  const Result<History> history =
      tasks[0].Fit(ArraysOfTest(), {.batch_size = 1, .epochs = 3, .verbose = Verbose::kSilent});
  EXPECT_NE(history.status().message().find(
                "batch_size: expected at least one example for each of the 2 tasks"),
            std::string::npos);
}

TEST(Fit, OfTwoTasksStopsInTheEpochInWhichOneTaskStops) {
  const Dataset data = ArraysOfTest();
  // No improvement is large enough, so training stops after the first epoch and `patience` more.
  const auto options = [] {
    FitOptions made = {.batch_size = 16, .epochs = 9, .verbose = Verbose::kSilent};
    made.callbacks = {EarlyStopping{.monitor = "loss", .min_delta = 100, .patience = 2}};
    return made;
  };
  CompiledModel alone = CompiledFor(Strategy::OneDevice());
  EXPECT_EQ(alone.Fit(data, options()).value().values.at("loss").size(), 3U);
  std::vector<CompiledModel> tasks = CompiledForTwo();
  const auto histories = FitBoth(tasks, data, {options(), options()});
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(histories[i].ok()) << histories[i].status();
    EXPECT_EQ(histories[i]->values.at("loss").size(), 3U);
    EXPECT_EQ(tasks[i].step(), alone.step());
  }
}

// Stops training after a step.
class StopsAfter : public CallbackHooks {
 public:
  explicit StopsAfter(int64_t step) : step_(step) {}
  bool WantsBatches() const override { return true; }
  bool MayStopTraining() const override { return true; }
  Status OnBatchEnd(FitControl& run, int64_t, const Metrics&) override {
    return run.step() == step_ ? run.StopTraining() : Status();
  }

 private:
  const int64_t step_;
};

TEST(Fit, OfTwoTasksStopsBothIfOnlyOneTaskStops) {
  for (const size_t stopping : {0U, 1U}) {
    std::vector<CompiledModel> tasks = CompiledForTwo();
    std::vector<FitOptions> options(2,
                                    {.batch_size = 16, .epochs = 9, .verbose = Verbose::kSilent});
    options[stopping].callbacks = {Callback(std::make_shared<StopsAfter>(7))};
    const auto histories = FitBoth(tasks, ArraysOfTest(), options);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(histories[i].ok()) << histories[i].status();
      EXPECT_EQ(tasks[i].step(), 7) << i;
      EXPECT_EQ(histories[i]->values, histories[0]->values);
    }
    EXPECT_EQ(tasks[0].Evaluate(ArraysOfTest()).value().values(),
              tasks[1].Evaluate(ArraysOfTest()).value().values());
  }
}

// Returns a model with a layer and a metric of the program.
CompiledModel CompiledOwnFor(const Strategy& strategy) {
  const Layer scale =
      CustomLayer{.variables = {{.name = "scale", .shape = {8}, .initializer = "ones"}},
                  .call = [](const std::vector<Symbol>& in, const std::vector<Symbol>& variables) {
                    return in[0] * variables[0];
                  }};
  const Symbol label = Input{.shape = {1}}, scores = Input{.shape = {4}};
  const Symbol best = ops::Cast(ops::ExpandDims(ops::Argmax(scores), 1), "float32");
  const Symbol right = ops::Cast(ops::Equal(best, label), "float32");
  const CustomMetric accuracy = {.name = "own",
                                 .values = Functional({label, scores}, ops::Squeeze(right, {1}))};
  return Session(strategy, {.seed = 5, .threads = 1})
      .Compile(Sequential({Dense{.units = 8, .activation = "relu"}, scale, Dense{.units = 4}}),
               {.optimizer = Adam{.learning_rate = 0.01},
                .loss = SparseCategoricalCrossentropy{.from_logits = true},
                .metrics = {"accuracy", accuracy}})
      .value();
}

TEST(Fit, OfTwoTasksTrainsLayersAndComputesMetricsOfTheProgram) {
  const Dataset data = ArraysOfTest();
  const FitOptions options = {.batch_size = 16, .epochs = 3, .verbose = Verbose::kSilent};
  CompiledModel alone = CompiledOwnFor(Strategy::OneDevice());
  const History whole = alone.Fit(data, options).value();
  const std::vector<std::string> addresses = {wire::TestAddress(), wire::TestAddress()};
  std::vector<CompiledModel> tasks;
  for (int i = 0; i < 2; ++i) tasks.push_back(CompiledOwnFor(TaskOfTwo(addresses, i)));
  const auto histories = FitBoth(tasks, data, {options, options});
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(histories[i].ok()) << histories[i].status();
    EXPECT_EQ(histories[i]->values.at("own"), histories[i]->values.at("accuracy"));
    EXPECT_NEAR(histories[i]->values.at("own")[2], whole.values.at("own")[2], 1e-6);
    const auto weights = tasks[i].Weights().value(), expected = alone.Weights().value();
    EXPECT_EQ(weights[2].first, "custom_layer/scale");
    for (size_t e = 0; e < 8; ++e)
      EXPECT_NEAR(weights[2].second.float32()[e], expected[2].second.float32()[e], 1e-5);
    EXPECT_NE(weights[2].second.float32()[0], 1);
  }
}

TEST(Fit, OfTwoTasksWritesTheFilesOfTheChiefOnly) {
  std::vector<CompiledModel> tasks = CompiledForTwo();
  std::vector<FitOptions> options;
  std::vector<std::string> folders;
  for (const char* name : {"chief", "worker"}) {
    folders.push_back(StrCat(testing::TempDir(), "/", name));
    std::filesystem::remove_all(folders.back());
    std::filesystem::create_directory(folders.back());
    options.push_back({.batch_size = 16, .epochs = 2, .verbose = Verbose::kSilent});
    options.back().callbacks = {CSVLogger{.file = folders.back() + "/log.csv"},
                                ModelCheckpoint{.path = folders.back() + "/m.safetensors"},
                                TensorBoard{.log_dir = folders.back() + "/logs"}};
  }
  for (const auto& history : FitBoth(tasks, ArraysOfTest(), options))
    ASSERT_TRUE(history.ok()) << history.status();
  for (const char* file : {"/log.csv", "/m.safetensors", "/logs"})
    EXPECT_TRUE(std::filesystem::exists(folders[0] + file)) << file;
  EXPECT_TRUE(std::filesystem::is_empty(folders[1]));
}

}  // namespace
}  // namespace tfjob::api
