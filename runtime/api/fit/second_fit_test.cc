// Runs jobs whose programs call Fit twice, each task on its own thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "runtime/api/access.h"
#include "runtime/api/fit/fit_result.h"
#include "runtime/api/fit/runs_of_job.h"
#include "runtime/api/layers.h"
#include "runtime/api/losses.h"
#include "runtime/api/optimizers.h"
#include "runtime/api/session.h"
#include "runtime/train/test_job.h"

namespace tfjob::api {
namespace {

using cluster::Task;

constexpr int64_t kRows = 96;
constexpr int64_t kStepsPerFit = 12;  // two epochs with batches of 16

Dataset Rows() {
  tfjob::Tensor x(tfjob::DType::kFloat32, {kRows, 3}), y(tfjob::DType::kInt64, {kRows});
  for (size_t i = 0; i < x.data<float>().size(); ++i)
    x.data<float>()[i] = static_cast<float>((i * 37 + 11) % 100) / 100;
  for (size_t i = 0; i < y.data<int64_t>().size(); ++i)
    y.data<int64_t>()[i] = static_cast<int64_t>(i * 7 % 4);
  return data::Arrays{.x = Access::MakeTensor(x), .y = Access::MakeTensor(y)};
}

std::string EmptyFolder(const std::string& name) {
  const std::string path = StrCat(testing::TempDir(), "/second_fit_", name);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

CompiledModel ModelFor(const Strategy& strategy) {
  return Session(strategy, {.seed = 5, .threads = 1})
      .Compile(Sequential({Dense{.units = 8, .activation = "relu"}, Dense{.units = 4}}),
               {.optimizer = Adam{.learning_rate = 0.01},
                .loss = SparseCategoricalCrossentropy{.from_logits = true},
                .metrics = {"accuracy"}})
      .value();
}

FitOptions OptionsOf(int call, const std::string& folder) {
  return {.batch_size = 16,
          .epochs = 2,
          .callbacks = {BackupAndRestore{.backup_dir = StrCat(folder, "/", call)}},
          .followed_by_fit = call == 0,
          .verbose = Verbose::kSilent};
}

// The results of a task's program.
struct Seen {
  Result<History> first = Status(StatusCode::kUnknown, "not run");
  Result<History> second = Status(StatusCode::kUnknown, "not run");
  int64_t first_step = 0, step = 0;
  std::vector<std::pair<std::string, Tensor>> weights;
};

// Changes the options of a call. `start` counts how often the task's program was started before.
using Adapt = std::function<void(const Task& task, size_t start, int call, FitOptions& options)>;

// A job whose tasks call Fit twice.
class TwoFits {
 public:
  TwoFits(const std::string& name, std::vector<Task> tasks, config::StrategyConfig config = {})
      : folder_(EmptyFolder(name)), tasks_(std::move(tasks)), config_(std::move(config)) {
    for (const Task& task : tasks_) cluster_.AddressOf(task);
  }

  cluster::TfConfig ConfigOf(const Task& task) { return cluster_.Static(task, tasks_); }

  // Runs the program of a task as a process that has just been started.
  Seen RunProgram(const Task& task, size_t start = 0, const Adapt& adapt = nullptr) {
    StrategyData data;
    data.tf_config = ConfigOf(task);
    data.job = {"uid", 0};
    data.config = config_;
    ForgetRuns(data.tf_config);
    CompiledModel model = ModelFor(Access::MakeStrategy(std::move(data)));
    FitOptions options[] = {OptionsOf(0, folder_), OptionsOf(1, folder_)};
    for (int call = 0; adapt && call < 2; ++call) adapt(task, start, call, options[call]);
    Seen seen;
    seen.first = model.Fit(Rows(), options[0]);
    seen.first_step = model.step();
    if (seen.first.ok()) seen.second = model.Fit(Rows(), options[1]);
    seen.step = model.step();
    if (auto weights = model.Weights(); weights.ok()) seen.weights = *weights;
    return seen;
  }

  // Runs all tasks. If the program of a task fails, runs it again.
  std::map<Task, std::vector<Seen>> Run(const Adapt& adapt = nullptr) {
    std::map<Task, std::vector<Seen>> seen;
    for (const Task& task : tasks_) seen[task];
    std::vector<std::thread> threads;
    for (const Task& task : tasks_) {
      threads.emplace_back([&, task] {
        std::vector<Seen>& runs = seen.at(task);
        do {
          runs.push_back(RunProgram(task, runs.size(), adapt));
        } while (runs.size() < 2 && runs.back().second.status().code() == StatusCode::kInternal);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return seen;
  }

  const std::string& folder() const { return folder_; }

 private:
  const std::string folder_;
  const std::vector<Task> tasks_;
  const config::StrategyConfig config_;
  train::TestCluster cluster_;
};

config::StrategyConfig Servers(config::PsMode mode) {
  config::StrategyConfig config;
  config.kind = config::StrategyKind::kParameterServer;
  config.mode = mode;
  return config;
}

// Makes the task fail in the second epoch of the second Fit, as if it had crashed.
Adapt FailsInSecondFit(const Task& failing) {
  return [failing](const Task& task, size_t start, int call, FitOptions& options) {
    if (task != failing || start > 0 || call != 1) return;
    options.callbacks.push_back(LambdaCallback{.on_epoch_begin = [](FitControl&, int64_t epoch) {
      return epoch == 1 ? Status(StatusCode::kInternal, "crashed") : Status();
    }});
  };
}

void ExpectSameWeights(const Seen& a, const Seen& b) {
  ASSERT_FALSE(a.weights.empty());
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t v = 0; v < a.weights.size(); ++v) {
    EXPECT_TRUE(std::ranges::equal(a.weights[v].second.bytes(), b.weights[v].second.bytes()))
        << a.weights[v].first;
  }
}

const Task kChief{"chief", 0}, kWorker{"worker", 0}, kServer{"ps", 0}, kEvaluator{"evaluator", 0};

TEST(SecondFit, TasksOfAGroupGoOnFromTheFirst) {
  TwoFits job("group", {kChief, kWorker});
  const auto seen = job.Run();
  const Seen& chief = seen.at(kChief)[0];
  ASSERT_TRUE(chief.second.ok()) << chief.second.status();
  ASSERT_TRUE(seen.at(kWorker)[0].second.ok()) << seen.at(kWorker)[0].second.status();
  EXPECT_EQ(chief.first_step, kStepsPerFit);
  EXPECT_EQ(chief.step, 2 * kStepsPerFit);
  EXPECT_LT(chief.second->values.at("loss").back(), chief.first->values.at("loss").back());
  ExpectSameWeights(chief, seen.at(kWorker)[0]);
}

// The history of a call is that of the process that has trained it.
TEST(SecondFit, AChiefThatStartsAgainFindsTheFirstComplete) {
  TwoFits job("chief", {kChief, kWorker}), undisturbed("undisturbed", {kChief, kWorker});
  const auto seen = job.Run(FailsInSecondFit(kChief));
  ASSERT_EQ(seen.at(kChief).size(), 2u);
  const Seen &crashed = seen.at(kChief)[0], &again = seen.at(kChief)[1];
  EXPECT_EQ(crashed.second.status().message(), "crashed");
  ASSERT_TRUE(again.second.ok()) << again.second.status();
  EXPECT_EQ(again.first->values, crashed.first->values);
  EXPECT_EQ(again.first->epoch, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(again.first_step, kStepsPerFit);
  EXPECT_EQ(again.step, 2 * kStepsPerFit);
  ExpectSameWeights(again, seen.at(kWorker)[0]);
  ExpectSameWeights(again, undisturbed.Run().at(kChief)[0]);
}

TEST(SecondFit, AWorkerThatStartsAgainFindsTheFirstComplete) {
  TwoFits job("worker", {kChief, kWorker});
  const auto seen = job.Run(FailsInSecondFit(kWorker));
  ASSERT_EQ(seen.at(kWorker).size(), 2u);
  const Seen& again = seen.at(kWorker)[1];
  ASSERT_TRUE(again.second.ok()) << again.second.status();
  EXPECT_EQ(again.first->values, seen.at(kChief)[0].first->values);
  EXPECT_EQ(again.step, 2 * kStepsPerFit);
  ExpectSameWeights(again, seen.at(kChief)[0]);
}

// The first Fit ends early, and its model is not that of the last step.
TEST(SecondFit, StartsFromTheBestEpochAlsoInATaskThatStartsAgain) {
  const Adapt adapt = [crash = FailsInSecondFit(kWorker)](const Task& task, size_t start, int call,
                                                          FitOptions& options) {
    crash(task, start, call, options);
    if (call == 1) return;
    options.epochs = 5;
    options.callbacks.push_back(EarlyStopping{
        .monitor = "loss", .min_delta = 1000, .patience = 2, .restore_best_weights = true});
  };
  TwoFits job("early", {kChief, kWorker});
  const auto seen = job.Run(adapt);
  const Seen& chief = seen.at(kChief)[0];
  ASSERT_TRUE(chief.second.ok()) << chief.second.status();
  EXPECT_TRUE(chief.first->stopped);
  EXPECT_EQ(chief.first_step, kStepsPerFit / 2) << "the first epoch is the best";
  EXPECT_EQ(chief.step, kStepsPerFit / 2 + kStepsPerFit);
  ASSERT_EQ(seen.at(kWorker).size(), 2u);
  EXPECT_TRUE(seen.at(kWorker)[1].first->stopped);
  ExpectSameWeights(chief, seen.at(kWorker)[1]);
}

TEST(SecondFit, SynchronousServersTrainAsInOneFit) {
  TwoFits job("sync", {kChief, kWorker, kServer}, Servers(config::PsMode::kSync));
  const auto seen = job.Run();
  const Seen& chief = seen.at(kChief)[0];
  ASSERT_TRUE(chief.second.ok()) << chief.second.status();
  EXPECT_EQ(chief.step, 2 * kStepsPerFit);
  for (const Task& task : {kWorker, kServer}) {
    const Seen& other = seen.at(task)[0];
    EXPECT_TRUE(other.first.ok()) << other.first.status();
    EXPECT_TRUE(Access::IsJobOver(other.second.status())) << other.second.status();
  }
  TwoFits once("once", {kChief, kWorker, kServer}, Servers(config::PsMode::kSync));
  const auto expected = once.Run([](const Task&, size_t, int call, FitOptions& options) {
    options.epochs = call == 0 ? 4 : 0;
  });
  EXPECT_EQ(expected.at(kChief)[0].first_step, 2 * kStepsPerFit);
  ExpectSameWeights(chief, expected.at(kChief)[0]);
}

// Asynchronous tasks may make a few steps more than planned, which the second Fit makes up for.
TEST(SecondFit, AsynchronousTasksThatStartAgainFindTheFirstComplete) {
  for (const Task& failing : {kChief, kWorker}) {
    TwoFits job("async", {kChief, kWorker, kServer}, Servers(config::PsMode::kAsync));
    const auto seen = job.Run(FailsInSecondFit(failing));
    const Seen& again = seen.at(failing).back();
    EXPECT_TRUE(again.first.ok()) << again.first.status();
    EXPECT_GE(again.first_step, 2 * kStepsPerFit) << "a step has half a batch";
    const Seen& chief = seen.at(kChief).back();
    ASSERT_TRUE(chief.second.ok()) << chief.second.status();
    EXPECT_GE(chief.step, 4 * kStepsPerFit);
    EXPECT_LE(chief.step, 4 * kStepsPerFit + 2);
  }
}

// Trains the second layer, compiles the model again, and trains all layers. Returns the first
// layer's kernel after each Fit; empty tensors in a ps.
std::pair<Tensor, Tensor> FineTune(const Strategy& strategy, const std::string& folder) {
  const Model model =
      Sequential({Input{.shape = {3}}, Dense{.units = 8, .name = "base"}, Dense{.units = 4}});
  const Session session(strategy, {.seed = 5, .threads = 1});
  const auto compile = [&](const Model& one) {
    return session
        .Compile(one, {.optimizer = Adam{.learning_rate = 0.01},
                       .loss = SparseCategoricalCrossentropy{.from_logits = true}})
        .value();
  };
  CompiledModel head = compile(model.Frozen({"base"})), tuned = compile(model);
  const Status first = head.Fit(Rows(), OptionsOf(0, folder)).status();
  EXPECT_TRUE(first.ok()) << first;
  std::map<std::string, Tensor> weights;
  if (const auto values = head.Weights(); values.ok()) {
    for (const auto& [name, value] : *values) weights.emplace(name, value);
    const Status set = tuned.SetWeights(weights);
    EXPECT_TRUE(set.ok()) << set;
  }
  const Status second = tuned.Fit(Rows(), OptionsOf(1, folder)).status();
  EXPECT_TRUE(second.ok() || Access::IsJobOver(second)) << second;
  EXPECT_TRUE(!second.ok() || tuned.step() == kStepsPerFit) << tuned.step();
  if (weights.empty()) return {};
  return {weights.at("base/kernel"), tuned.Weights().value()[0].second};
}

TEST(SecondFit, MayTrainAnotherModelWithTheValuesOfTheFirst) {
  const std::string folder = EmptyFolder("tuned");
  const std::vector<Task> all = {kChief, kWorker, kServer};
  train::TestCluster cluster;
  for (const Task& task : all) cluster.AddressOf(task);
  std::vector<std::pair<Tensor, Tensor>> kernels(all.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); ++i) {
    StrategyData data;
    data.tf_config = cluster.Static(all[i], all);
    data.job = {"uid", 0};
    data.config = Servers(config::PsMode::kSync);
    const Strategy strategy = Access::MakeStrategy(std::move(data));
    threads.emplace_back([&, i, strategy] { kernels[i] = FineTune(strategy, folder); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::ranges::equal(kernels[0].first.bytes(), kernels[1].first.bytes())) << "frozen";
  EXPECT_FALSE(std::ranges::equal(kernels[0].first.bytes(), kernels[0].second.bytes()));
}

TEST(SecondFit, AnEvaluatorEvaluatesBoth) {
  TwoFits job("evaluated", {kChief, kServer, kEvaluator}, Servers(config::PsMode::kSync));
  const Dataset rows = Rows();
  const auto seen =
      job.Run([&](const Task&, size_t, int, FitOptions& options) { options.validation = &rows; });
  const Seen& evaluator = seen.at(kEvaluator)[0];
  EXPECT_TRUE(evaluator.first.ok()) << evaluator.first.status();
  EXPECT_TRUE(Access::IsJobOver(evaluator.second.status())) << evaluator.second.status();
  for (const char* call : {"0", "1"}) {
    EXPECT_TRUE(
        std::filesystem::exists(StrCat(job.folder(), "/", call, "/fit-backup/eval/finished.json")))
        << call;
  }
}

TEST(SecondFit, ALoneProcessThatStartsAgainFindsTheFirstComplete) {
  const std::string folder = EmptyFolder("alone");
  CompiledModel first = ModelFor(Strategy::OneDevice());
  const History history = first.Fit(Rows(), OptionsOf(0, folder)).value();
  CompiledModel again = ModelFor(Strategy::OneDevice());
  EXPECT_EQ(again.Fit(Rows(), OptionsOf(0, folder)).value().values, history.values);
  EXPECT_EQ(again.step(), kStepsPerFit);
  ASSERT_TRUE(again.Fit(Rows(), OptionsOf(1, folder)).ok());
  EXPECT_EQ(again.step(), 2 * kStepsPerFit);
  // A call with another plan is another call.
  CompiledModel longer = ModelFor(Strategy::OneDevice());
  FitOptions options = OptionsOf(0, folder);
  options.epochs = 3;
  EXPECT_EQ(longer.Fit(Rows(), options).value().epoch, (std::vector<int64_t>{2}));
}

TEST(SecondFit, NeedsAFolderOfItsOwnInEachCall) {
  TwoFits job("refused", {kChief, kWorker});
  const auto no_backup = [](const Task&, size_t, int, FitOptions& options) {
    options.callbacks.clear();
  };
  const Status refused = job.RunProgram(kWorker, 0, no_backup).first.status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(refused.message().starts_with("followed_by_fit: ")) << refused;
  const auto seen = job.Run([&](const Task&, size_t, int call, FitOptions& options) {
    if (call == 1) options.callbacks = OptionsOf(0, job.folder()).callbacks;
  });
  const Status same = seen.at(kChief)[0].second.status();
  EXPECT_TRUE(same.message().starts_with("BackupAndRestore: backup_dir: an earlier call")) << same;
}

TEST(SecondFit, IsRefusedUnlessTheFirstSaysThatItFollows) {
  TwoFits job("unannounced", {kChief, kWorker});
  const auto seen = job.Run(
      [](const Task&, size_t, int, FitOptions& options) { options.followed_by_fit = false; });
  const Status refused = seen.at(kChief)[0].second.status();
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_NE(refused.message().find("set followed_by_fit"), std::string::npos) << refused;
}

TEST(FitResult, KeepsNumbersThatAreNotFinite) {
  const FitId id{.folder = EmptyFolder("result"), .job_uid = "uid", .run = 1};
  FitResult result{.run_end = 7, .planned_step = 9, .epochs_begun = 2};
  result.history.epoch = {0, 1};
  result.history.values["loss"] = {INFINITY, std::nan("")};
  result.values = std::make_shared<const state::Snapshot>(state::Snapshot{.global_step = 6});
  ASSERT_TRUE(WriteFitResult(id, result, {}).ok());
  const auto read = ReadFitResult(id, 9, nullptr);
  ASSERT_TRUE(read.ok() && *read) << read.status();
  EXPECT_EQ((*read)->run_end, 7);
  EXPECT_EQ((*read)->history.epoch, result.history.epoch);
  EXPECT_EQ((*read)->history.values.at("loss")[0], INFINITY);
  EXPECT_TRUE(std::isnan((*read)->history.values.at("loss")[1]));
  EXPECT_FALSE(ReadFitResult(id, 10, nullptr)->has_value()) << "another plan";
  EXPECT_FALSE(ReadFitResult({id.folder, "uid", 0}, 9, nullptr)->has_value()) << "another run";
  EXPECT_FALSE(ReadFitResult({id.folder, "other", 1}, 9, nullptr)->has_value()) << "another job";
}

}  // namespace
}  // namespace tfjob::api
