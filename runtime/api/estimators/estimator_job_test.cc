// Runs jobs of Estimators, each task on its own thread.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <thread>

#include "runtime/api/access.h"
#include "runtime/api/estimator.h"
#include "runtime/base/mutex.h"
#include "runtime/train/test_job.h"

namespace tfjob::api {
namespace {

using cluster::Task;

std::string NewFolder(const std::string& name) {
  const std::string path = StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(path);
  return path;
}

Dataset Line() {
  tfjob::Tensor x(tfjob::DType::kFloat32, {40, 1}), y(tfjob::DType::kFloat32, {40, 1});
  for (size_t i = 0; i < 40; ++i) {
    x.data<float>()[i] = static_cast<float>(i) / 40;
    y.data<float>()[i] = 2 * x.data<float>()[i] + 1;
  }
  return data::Arrays{.y = Access::MakeTensor(y), .inputs = {{"x", Access::MakeTensor(x)}}};
}

// Records the contexts that the tasks pass to their input functions. Thread-safe.
class Contexts {
 public:
  InputFunction Function() {
    return [this](const InputContext& context) -> Result<InputBatches> {
      MutexLock lock(mutex_);
      seen_.emplace(context.num_input_pipelines, context.input_pipeline_id);
      return InputBatches{.examples = Line(), .batch_size = 10};
    };
  }
  std::set<std::pair<int, int>> seen() {
    MutexLock lock(mutex_);
    return seen_;
  }

 private:
  Mutex mutex_;
  std::set<std::pair<int, int>> seen_ ABSL_GUARDED_BY(mutex_);
};

// Returns the strategy that Strategy::FromEnvironment would return in a task with this TF_CONFIG.
Strategy StrategyIn(const cluster::TfConfig& tf_config) {
  StrategyData data;
  data.tf_config = tf_config;
  data.job = {"uid", 0};
  return Access::MakeStrategy(std::move(data));
}

// Calls TrainAndEvaluate in every task, and returns the results.
std::vector<Result<Metrics>> RunJob(const std::vector<Task>& tasks, const std::string& folder,
                                    const TrainSpec& train, const EvalSpec& eval) {
  train::TestCluster addresses;
  std::vector<Result<Metrics>> results(tasks.size(), Status(StatusCode::kUnknown, "not run"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Estimator estimator = LinearRegressor{
        .feature_columns = {{"x"}},
        .optimizer = "sgd",
        .config = {.model_dir = folder,
                   .train_distribute = StrategyIn(addresses.Static(tasks[i], tasks)),
                   .session = {.threads = 1}}};
    threads.emplace_back(
        [&, i, estimator] { results[i] = TrainAndEvaluate(estimator, train, eval); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(EstimatorJob, HasTheRolesOfItsTasks) {
  const std::string folder = NewFolder("roles");
  Contexts train, eval;
  const auto results =
      RunJob({{"chief", 0}, {"worker", 0}, {"ps", 0}, {"evaluator", 0}}, folder,
             {.input_fn = train.Function(), .max_steps = 60},
             {.input_fn = eval.Function(), .start_delay_secs = 0, .throttle_secs = 0});
  for (const size_t trains : {0, 1}) {
    ASSERT_TRUE(results[trains].ok()) << results[trains].status();
    EXPECT_TRUE(results[trains]->values().empty()) << "the evaluator evaluates";
  }
  for (const size_t other : {2, 3})
    EXPECT_TRUE(Access::IsJobOver(results[other].status())) << results[other].status();
  EXPECT_EQ(train.seen(), (std::set<std::pair<int, int>>{{2, 0}, {2, 1}}));
  EXPECT_EQ(eval.seen(), (std::set<std::pair<int, int>>{{1, 0}}));
  EXPECT_TRUE(std::filesystem::exists(folder + "/eval/finished.json"));
}

TEST(EstimatorJob, TheChiefEvaluatesTheLastStepIfThereIsNoEvaluator) {
  Contexts train, eval;
  const auto results =
      RunJob({{"chief", 0}, {"worker", 0}, {"ps", 0}}, NewFolder("chief"),
             {.input_fn = train.Function(), .max_steps = 400}, {.input_fn = eval.Function()});
  ASSERT_TRUE(results[0].ok()) << results[0].status();
  EXPECT_GE((*results[0])["global_step"], 400);
  EXPECT_LT((*results[0])["loss"], 0.05);
  EXPECT_TRUE(results[1].value().values().empty());
}

TEST(EstimatorJob, AGroupSharesOnePipeline) {
  Contexts train, eval;
  const auto results =
      RunJob({{"worker", 0}, {"worker", 1}}, NewFolder("group"),
             {.input_fn = train.Function(), .max_steps = 20}, {.input_fn = eval.Function()});
  ASSERT_TRUE(results[0].ok()) << results[0].status();
  ASSERT_TRUE(results[1].ok()) << results[1].status();
  EXPECT_EQ((*results[0])["global_step"], 20);
  EXPECT_EQ(train.seen(), (std::set<std::pair<int, int>>{{1, 0}}));
}

TEST(EstimatorJob, TrainIsForAProcessThatTrainsAlone) {
  train::TestCluster addresses;
  const std::vector<Task> tasks = {{"chief", 0}, {"ps", 0}};
  RunConfig config = {.model_dir = NewFolder("alone"),
                      .train_distribute = StrategyIn(addresses.Static(tasks[0], tasks))};
  const Estimator estimator = LinearRegressor{.feature_columns = {{"x"}}, .config = config};
  Contexts train;
  const Status refused = estimator.Train(train.Function(), {.steps = 1});
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("chief 0 of a job; use TrainAndEvaluate"), std::string::npos)
      << refused;
  config.model_dir.clear();
  const Estimator homeless = LinearRegressor{.feature_columns = {{"x"}}, .config = config};
  EXPECT_NE(homeless.Latest().status().message().find("model_dir: expected the folder"),
            std::string::npos);
}

}  // namespace
}  // namespace tfjob::api
