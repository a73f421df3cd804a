// Tests callbacks that change the learning rate: in jobs, with each strategy, and in a Fit that
// continues from a checkpoint.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "runtime/api/access.h"
#include "runtime/api/compiled_state.h"
#include "runtime/api/layers.h"
#include "runtime/api/losses.h"
#include "runtime/api/optimizers.h"
#include "runtime/base/file.h"
#include "runtime/train/test_job.h"

namespace tfjob::api {
namespace {

using cluster::Task;

// In batches of 16, the examples make 6 steps per epoch.
constexpr int64_t kExamples = 96, kEpochs = 9;

Dataset RateData() {
  tfjob::Tensor x(tfjob::DType::kFloat32, {kExamples, 3}), y(tfjob::DType::kInt64, {kExamples});
  for (size_t i = 0; i < x.data<float>().size(); ++i)
    x.data<float>()[i] = static_cast<float>((i * 37 + 11) % 100) / 100;
  for (size_t i = 0; i < y.data<int64_t>().size(); ++i)
    y.data<int64_t>()[i] = static_cast<int64_t>(i * 7 % 4);
  return data::Arrays{.x = Access::MakeTensor(std::move(x)), .y = Access::MakeTensor(std::move(y))};
}

CompiledModel CompiledOn(const Strategy& strategy) {
  return Session(strategy, {.seed = 5, .threads = 2})
      .Compile(Sequential({Dense{.units = 8, .activation = "relu"}, Dense{.units = 4}}),
               {.optimizer = SGD{.learning_rate = 0.5, .momentum = 0.9},
                .loss = SparseCategoricalCrossentropy{.from_logits = true}})
      .value();
}

// Returns a callback that derives each epoch's rate from the rate before, so that it matters how
// often it is called.
Callback Falling() {
  return LearningRateScheduler{
      [](int64_t epoch, double rate) { return epoch == 0 ? 0.3 : rate * 0.7; }};
}

// Returns the options of a Fit with `callbacks`.
FitOptions RateOptions(std::vector<Callback> callbacks) {
  return {.batch_size = 16,
          .epochs = kEpochs,
          .callbacks = std::move(callbacks),
          .verbose = Verbose::kSilent};
}

std::vector<float> WeightsOf(const CompiledModel& model) {
  std::vector<float> all;
  for (const auto& [name, tensor] : model.Weights().value())
    all.insert(all.end(), tensor.float32().begin(), tensor.float32().end());
  return all;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
}

// A job whose tasks call Fit on threads.
class RateJob {
 public:
  RateJob(const std::vector<Task>& tasks, config::PsMode mode, const std::string& uid = "uid") {
    for (const Task& task : tasks) {
      uses_servers = uses_servers || task.type == "ps";
      StrategyData data;
      data.tf_config = cluster_.Static(task, tasks);
      data.job = {uid, 0};
      data.config.mode = mode;
      models.push_back(CompiledOn(Access::MakeStrategy(std::move(data))));
    }
  }

  // `options_of(i)` returns the options of task i.
  template <typename OptionsOf>
  void Fit(const OptionsOf& options_of) {
    const Dataset data = RateData();
    histories.assign(models.size(), Status(StatusCode::kUnknown, "not run"));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < models.size(); ++i)
      threads.emplace_back([&, i] { histories[i] = models[i].Fit(data, options_of(i)); });
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<CompiledModel> models;
  std::vector<Result<History>> histories;
  bool uses_servers = false;

 private:
  train::TestCluster cluster_;
};

const std::vector<Task>& Group() {
  static const auto* const kTasks =
      new std::vector<Task>{{"chief", 0}, {"worker", 0}, {"worker", 1}};
  return *kTasks;
}

const std::vector<Task>& WithServers() {
  static const auto* const kTasks =
      new std::vector<Task>{{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}};
  return *kTasks;
}

// A Fit on one device, with the same callback.
struct Alone {
  Alone() : model(CompiledOn(Strategy::OneDevice())) {
    history = model.Fit(RateData(), RateOptions({Falling()})).value();
    weights = WeightsOf(model);
  }
  CompiledModel model;
  History history;
  std::vector<float> weights;
};

TEST(LearningRate, OfSeveralDevicesIsThatOfOne) {
  const Alone alone;
  ASSERT_EQ(alone.history.values.at("learning_rate").size(), size_t{kEpochs});
  EXPECT_DOUBLE_EQ(alone.history.values.at("learning_rate")[2], 0.3 * 0.7 * 0.7);
  EXPECT_EQ(alone.model.step(), 54);
  for (const Strategy& strategy : {Strategy::Mirrored(2), Strategy::CentralStorage(2)}) {
    CompiledModel model = CompiledOn(strategy);
    const auto history = model.Fit(RateData(), RateOptions({Falling()}));
    ASSERT_TRUE(history.ok()) << history.status();
    EXPECT_EQ(history->values.at("learning_rate"), alone.history.values.at("learning_rate"));
    ExpectNear(WeightsOf(model), alone.weights);
  }
}

TEST(LearningRate, OfAGroupIsThatOfOneDevice) {
  const Alone alone;
  RateJob job(Group(), config::PsMode::kAsync);
  job.Fit([](size_t) { return RateOptions({Falling()}); });
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(job.histories[i].ok()) << job.histories[i].status();
    EXPECT_EQ(job.histories[i]->values.at("learning_rate"),
              alone.history.values.at("learning_rate"));
    ExpectNear(WeightsOf(job.models[i]), alone.weights);
    EXPECT_EQ(WeightsOf(job.models[i]), WeightsOf(job.models[0])) << "bit for bit";
  }
}

TEST(LearningRate, OfAGroupIsThatOfTheChiefEvenIfOnlyTheChiefSetsIt) {
  const Alone alone;
  RateJob job(Group(), config::PsMode::kAsync);
  job.Fit([](size_t task) {
    return RateOptions(
        {task == 0 ? Falling() : LearningRateScheduler{[](int64_t, double) { return 7.0; }}});
  });
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(job.histories[i].ok()) << job.histories[i].status();
    ExpectNear(WeightsOf(job.models[i]), alone.weights);
  }
}

TEST(LearningRate, OfSynchronousServersIsThatOfOneDevice) {
  const Alone alone;
  RateJob job(WithServers(), config::PsMode::kSync);
  job.Fit([](size_t) { return RateOptions({Falling()}); });
  ASSERT_TRUE(job.histories[0].ok()) << job.histories[0].status();
  EXPECT_EQ(job.histories[0]->values.at("learning_rate"), alone.history.values.at("learning_rate"));
  ExpectNear(WeightsOf(job.models[0]), alone.weights);
  EXPECT_TRUE(Access::IsJobOver(job.histories[1].status())) << job.histories[1].status();
}

TEST(LearningRate, OfAsynchronousServersIsThatOfOneDevice) {
  const Alone alone;
  RateJob job({{"chief", 0}, {"ps", 0}, {"ps", 1}}, config::PsMode::kAsync);
  job.Fit([](size_t) { return RateOptions({Falling()}); });
  ASSERT_TRUE(job.histories[0].ok()) << job.histories[0].status();
  EXPECT_EQ(job.histories[0]->values.at("learning_rate"), alone.history.values.at("learning_rate"));
  ExpectNear(WeightsOf(job.models[0]), alone.weights);
}

TEST(LearningRate, OfAJobIsThatOfLaterCallsAndFiles) {
  RateJob job({{"chief", 0}, {"ps", 0}}, config::PsMode::kSync);
  job.Fit([](size_t) { return RateOptions({Falling()}); });
  ASSERT_TRUE(job.histories[0].ok()) << job.histories[0].status();
  const double last = job.histories[0]->values.at("learning_rate").back();
  const CompiledData& data = *Access::Shared(job.models[0]);
  EXPECT_EQ(data.config.optimizer.learning_rate, last);
  EXPECT_EQ(data.definition->state.optimizer.learning_rate, last);
}

std::string Folder(const std::string& name) {
  const std::string path = StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(path);
  return path;
}

// Returns a callback that ends Fit with an error after this step.
Callback FailAfter(int64_t step) {
  return LambdaCallback{.on_batch_end = [step](FitControl& run, int64_t, const Metrics&) {
    return run.step() == step ? Status(StatusCode::kAborted, "as the test wants") : Status();
  }};
}

// Waits until the checkpoint of this step is listed. The list is written last. Returns an error
// after a minute.
Status AwaitCheckpoint(const std::string& folder, int64_t step) {
  const std::string list = folder + "/fit-backup/checkpoint";
  const std::string entry = StrCat("model.ckpt-", step, "\"");
  const Duration deadline = RealClock().Monotonic() + 60s;
  for (;;) {
    const StatusOr<std::string> text = ReadFile(list);
    if (text.ok() && text->find(entry) != std::string::npos) break;
    if (RealClock().Monotonic() > deadline)
      return Status(StatusCode::kDeadlineExceeded, StrCat(list, " does not list ", entry));
    std::this_thread::sleep_for(5ms);
  }
  return {};
}

// Returns a callback that ends Fit with an error once there is a checkpoint of the step `saved`.
// While a checkpoint is being written, a later one is put off, so the callback waits for that of
// step 0 after the first step.
Callback FailOnceSaved(const std::string& folder, int64_t saved) {
  return LambdaCallback{.on_batch_end = [=](FitControl& run, int64_t, const Metrics&) {
    if (run.step() == 1) return AwaitCheckpoint(folder, 0);
    if (run.step() <= saved) return Status();
    const Status found = AwaitCheckpoint(folder, saved);
    return found.ok() ? Status(StatusCode::kAborted, "as the test wants") : found;
  }};
}

// Returns a callback that stores the rate and the step with which training begins.
Callback NoteStart(double& rate, int64_t& step) {
  return LambdaCallback{.on_train_begin = [&rate, &step](FitControl& run) {
    rate = run.learning_rate();
    step = run.step();
    return Status();
  }};
}

// Step 16 is in the middle of an epoch, and step 18 between two.
TEST(LearningRate, IsRestoredFromABackupExactlyOnce) {
  const Alone alone;
  for (const int64_t saved : {16, 18}) {
    const std::string folder = Folder("once");
    const BackupAndRestore backup = {.backup_dir = folder, .save_freq = saved};
    const auto failed =
        CompiledOn(Strategy::OneDevice())
            .Fit(RateData(), RateOptions({backup, Falling(), FailOnceSaved(folder, saved)}));
    ASSERT_EQ(failed.status().code(), StatusCode::kAborted) << failed.status();
    double rate = 0;
    int64_t step = 0;
    CompiledModel again = CompiledOn(Strategy::OneDevice());
    const auto history =
        again.Fit(RateData(), RateOptions({NoteStart(rate, step), backup, Falling()}));
    ASSERT_TRUE(history.ok()) << history.status();
    EXPECT_EQ(step, saved);
    EXPECT_EQ(rate, alone.history.values.at("learning_rate")[static_cast<size_t>(saved) / 6]);
    EXPECT_EQ(WeightsOf(again), alone.weights) << "from step " << saved;
  }
}

// The rate is reduced at the end of the epoch whose last step is saved.
TEST(LearningRate, ThatIsReducedAtTheStepOfACheckpointIsPartOfIt) {
  const ReduceLROnPlateau reduce = {
      .monitor = "loss", .factor = 0.5, .patience = 1, .min_delta = 100};
  const std::string folder = Folder("reduced");
  const BackupAndRestore backup = {.backup_dir = folder, .save_freq = 12};
  const auto failed =
      CompiledOn(Strategy::OneDevice())
          .Fit(RateData(), RateOptions({backup, reduce, FailOnceSaved(folder, 12)}));
  ASSERT_EQ(failed.status().code(), StatusCode::kAborted) << failed.status();
  double rate = 0;
  int64_t step = 0;
  CompiledModel again = CompiledOn(Strategy::OneDevice());
  ASSERT_TRUE(again.Fit(RateData(), RateOptions({NoteStart(rate, step), backup, reduce})).ok());
  EXPECT_EQ(step, 12);
  EXPECT_EQ(rate, 0.25);
}

// Trains in a second job, which continues from the backup of an earlier one at the step `resumes`.
void ExpectToResume(const std::vector<Task>& tasks, const BackupAndRestore& backup, int64_t resumes,
                    double rate_then) {
  const Alone alone;
  std::vector<double> rates(tasks.size());
  std::vector<int64_t> steps(tasks.size());
  RateJob job(tasks, config::PsMode::kSync, "second");
  job.Fit([&](size_t task) {
    return RateOptions({NoteStart(rates[task], steps[task]), backup, Falling()});
  });
  ASSERT_TRUE(job.histories[0].ok()) << job.histories[0].status();
  EXPECT_EQ(steps[0], resumes);
  EXPECT_DOUBLE_EQ(rates[0], rate_then);
  // With parameter servers, the chief may have set the next rate before the worker starts.
  const bool told = rates[1] == rates[0] || (job.uses_servers && rates[1] == rates[0] * 0.7);
  EXPECT_TRUE(told) << rates[1];
  ExpectNear(WeightsOf(job.models[0]), alone.weights);
}

TEST(LearningRate, OfAGroupIsRestoredFromItsBackup) {
  const std::string folder = Folder("group");
  const BackupAndRestore backup = {.backup_dir = folder, .save_freq = 16};
  RateJob job(Group(), config::PsMode::kSync, "first");
  job.Fit([&](size_t task) {
    return RateOptions({backup, Falling(), task == 0 ? FailOnceSaved(folder, 16) : FailAfter(17)});
  });
  for (const auto& history : job.histories)
    EXPECT_EQ(history.status().code(), StatusCode::kAborted) << history.status();
  ExpectToResume(Group(), backup, 16, 0.3 * 0.7 * 0.7);
}

TEST(LearningRate, OfServersIsRestoredFromTheBackupOfAnEarlierJob) {
  const BackupAndRestore backup = {.backup_dir = Folder("servers"), .save_freq = 8};
  RateJob job(WithServers(), config::PsMode::kSync, "first");
  job.Fit([&](size_t) {
    FitOptions options = RateOptions({backup, Falling()});
    options.epochs = 3;
    return options;
  });
  ASSERT_TRUE(job.histories[0].ok()) << job.histories[0].status();
  ExpectToResume(WithServers(), backup, 18, 0.3 * 0.7 * 0.7);
}

}  // namespace
}  // namespace tfjob::api
