// Tests that every run of a synchronous job has the same result, and that the position in the data
// is preserved when tasks stop, fail or restart.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <list>
#include <numeric>
#include <random>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/train/test_job.h"

namespace tfjob::train {
namespace {

std::vector<Task> JobOf(int workers, int servers) {
  std::vector<Task> job = {{"chief", 0}};
  for (int i = 0; i < workers; ++i) job.push_back({"worker", i});
  for (int i = 0; i < servers; ++i) job.push_back({"ps", i});
  return job;
}

class PositionTest : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }
  config::TrainingConfig Config(const std::string& text) const {
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  void Reserve(const std::vector<Task>& tasks) {
    for (const Task& task : tasks) AddressOf(task);
  }
  static std::string Newest(const std::string& folder) {
    auto latest = io::LatestCheckpoint(folder);
    return latest.ok() && *latest ? (*latest)->prefix : "";
  }
  static std::vector<float> Read(const std::string& folder, const std::string& name) {
    auto reader = io::BundleReader::Open(Newest(folder));
    StatusOr<Tensor> value = reader.ok() ? (*reader)->Read(name) : reader.status();
    EXPECT_TRUE(value.ok()) << value.status();
    if (!value.ok()) return {};
    return {value->data<float>().begin(), value->data<float>().end()};
  }
  // Returns the concatenated contents of the newest checkpoint's files.
  static std::string BytesOf(const std::string& folder) {
    const std::string prefix = Newest(folder);
    std::string bytes;
    for (const char* suffix : {".index", ".data-00000-of-00001"}) {
      StatusOr<std::string> file = ReadFile(prefix + suffix);
      EXPECT_TRUE(file.ok()) << file.status();
      bytes += file.value_or("");
    }
    return bytes;
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/position_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
};

// ---- every run has the same result

class DeterminismTest : public PositionTest {
 protected:
  config::TrainingConfig Regression(const std::string& folder, int batch_size) const {
    return Config(StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: 8, activation: tanh}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: adam, learning_rate: 0.01}
data:
  train: {format: linear, weights: [2.0, -1.0], bias: 1.0, noise: 0.3, examples: 96}
  shuffle: false
strategy: {mode: sync}
seed: 3
max_steps: 600
threads: 1
save_checkpoints_steps: 1000000
log_step_count_steps: 0
save_summary_steps: 0
batch_size: )",
                         batch_size, "\nmodel_dir: ", folder, "\n"));
  }
  // Starts the tasks in a random order, with random pauses, and waits for the end of the job.
  void Run(const std::string& folder, unsigned seed) {
    std::vector<Task> tasks = JobOf(2, 2);
    Reserve(tasks);
    const std::vector<Task> all = tasks;
    std::mt19937 random(seed);
    std::shuffle(tasks.begin(), tasks.end(), random);
    std::list<RunningTask> running;
    for (const Task& task : tasks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
      running.emplace_back(Regression(folder, 8), Static(task, all));
    }
    for (RunningTask& task : running) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
  }
};

TEST_F(DeterminismTest, TwoRunsGiveEqualCheckpointsAndThoseOfOneTaskWithTheWholeBatch) {
  Run(folder_ + "/first", 1);
  Run(folder_ + "/second", 2);
  const std::string first = BytesOf(folder_ + "/first");
  EXPECT_GT(first.size(), 100u);
  EXPECT_TRUE(first == BytesOf(folder_ + "/second"));

  config::TrainingConfig alone = Regression(folder_ + "/alone", 24);
  alone.strategy = {};
  RunningTask task(alone, cluster::TfConfig{});
  EXPECT_EQ(task.End(), OkStatus());
  double norm = 0, difference = 0;
  for (const char* name : {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}) {
    const std::vector<float> one = Read(folder_ + "/alone", name);
    const std::vector<float> three = Read(folder_ + "/first", name);
    ASSERT_EQ(one.size(), three.size());
    for (size_t i = 0; i < one.size(); ++i) {
      norm += one[i] * one[i];
      difference += (one[i] - three[i]) * (one[i] - three[i]);
    }
  }
  EXPECT_GT(norm, 1);
  EXPECT_LE(std::sqrt(difference / norm), 1e-4);
}

// ---- each example once per epoch

constexpr int kExamples = 64;
constexpr int kBatch = 4;

// Counts how many times each example is drawn. In example i, only feature i is not 0, and the label
// is so large that the weights do not affect the gradient. Each time the example is drawn, weight i
// grows by about 1. The weights are part of the state, so draws that a rollback undoes are not
// counted.
class CountingTest : public PositionTest {
 protected:
  void SetUp() override {
    PositionTest::SetUp();
    std::string rows;
    for (int i = 0; i < kExamples; ++i) {
      for (int k = 0; k < kExamples; ++k) rows += k == i ? "1," : "0,";
      rows += "1048576\n";
    }
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/rows.csv", rows).ok());
  }
  config::TrainingConfig Counting(const std::string& mode, int gradients, int steps) const {
    return Config(StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 64]}}, {Dense: {units: 1, use_bias: false, kernel_initializer: zeros}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: )",
                         kBatch * gradients / (2.0 * 1048576), R"(}
data: {train: {format: csv, header: false, file: )",
                         folder_, R"(/rows.csv}, shuffle: false}
batch_size: 4
threads: 1
save_checkpoints_steps: 60
log_step_count_steps: 0
save_summary_steps: 0
strategy: {mode: )",
                         mode, "}\nmax_steps: ", steps, "\nmodel_dir: ", folder_, "/model\n"));
  }
  // Returns how many times each example was drawn.
  std::vector<int> Counts() const {
    std::vector<int> counts;
    for (const float weight : Read(folder_ + "/model", "dense/kernel"))
      counts.push_back(static_cast<int>(std::lround(weight)));
    return counts;
  }
  // Checks that one of two tasks, the task with this rank, has drawn its batches in order, each
  // once per epoch. Returns how many examples it has drawn.
  static int CheckShare(const std::vector<int>& counts, int rank) {
    int sum = 0;
    const int epochs = counts[static_cast<size_t>(rank)];
    for (size_t i = static_cast<size_t>(rank); i < counts.size(); i += 2) {
      EXPECT_GE(counts[i], epochs - 1) << "example " << i;
      EXPECT_LE(counts[i], i < 2 ? epochs : counts[i - 2]) << "example " << i;
      sum += counts[i];
    }
    EXPECT_EQ(sum % kBatch, 0);
    return sum;
  }
  RunningTask& Start(const config::TrainingConfig& config, const Task& task) {
    return tasks_.emplace_back(config, Static(task, all_));
  }

  const std::vector<Task> all_ = JobOf(1, 2);
  std::list<RunningTask> tasks_;
};

TEST_F(CountingTest, AnUndisturbedSynchronousRunDrawsEveryExampleOncePerEpoch) {
  Reserve(all_);
  for (const Task& task : all_) Start(Counting("sync", 2, 40), task);
  for (RunningTask& task : tasks_) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
  EXPECT_EQ(Counts(), std::vector<int>(kExamples, 5));
}

TEST_F(CountingTest, ASynchronousJobGoesOnWhereItsLostTasksWere) {
  constexpr int kSteps = 1000;
  Reserve(all_);
  const config::TrainingConfig config = Counting("sync", 2, kSteps);
  std::list<Mortal> servers;
  for (int i : {0, 1}) servers.emplace_back(i, AddressOf({"ps", i})).Start(1);
  RunningTask* chief = &Start(config, {"chief", 0});
  RunningTask* worker = &Start(config, {"worker", 0});
  ASSERT_TRUE(worker->AwaitStep(150));
  EXPECT_EQ(worker->Stop().code(), StatusCode::kCancelled);
  worker = &Start(config, {"worker", 0});
  ASSERT_TRUE(worker->AwaitStep(300));
  EXPECT_EQ(chief->Stop().code(), StatusCode::kCancelled);
  chief = &Start(config, {"chief", 0});
  ASSERT_TRUE(chief->AwaitStep(450));
  for (Mortal& server : servers) {
    server.Kill();
    server.Start(2);
    const int64_t step = chief->Progress().step;
    ASSERT_TRUE(chief->AwaitStep(std::min<int64_t>(step + 100, kSteps)));
  }
  EXPECT_EQ(worker->End(), OkStatus());
  EXPECT_EQ(chief->End(), OkStatus());
  const std::vector<int> counts = Counts();
  ASSERT_EQ(counts.size(), size_t{kExamples});
  EXPECT_EQ(CheckShare(counts, 0) + CheckShare(counts, 1), kSteps * 2 * kBatch);
}

TEST_F(CountingTest, ALoneTaskGoesOnWhereItsCheckpointWas) {
  constexpr int kSteps = 1600;  // 100 epochs
  config::TrainingConfig config = Counting("sync", 1, kSteps);
  config.strategy = {};
  const auto train_to = [&](int64_t step) {
    config.max_steps = step;
    return RunningTask(config, cluster::TfConfig{}).End();
  };
  // Both calls stop in the middle of an epoch.
  EXPECT_EQ(train_to(503), OkStatus());
  EXPECT_EQ(train_to(1010), OkStatus());
  // A process that is killed does not save its last step, so the next process starts from an
  // earlier step.
  ASSERT_EQ(unlink((Newest(folder_ + "/model") + ".index").c_str()), 0);
  EXPECT_EQ(train_to(kSteps), OkStatus());
  EXPECT_EQ(Counts(), std::vector<int>(kExamples, kSteps * kBatch / kExamples));
}

TEST_F(CountingTest, AnAsynchronousTaskLosesAtMostOneBatchWhenItIsRestarted) {
  constexpr int kSteps = 1200;
  Reserve(all_);
  const config::TrainingConfig config = Counting("async", 1, kSteps);
  for (const Task& task : all_) Start(config, task);
  RunningTask* worker = &*std::next(tasks_.begin());
  for (const int64_t step : {200, 500, 800}) {
    ASSERT_TRUE(worker->AwaitStep(step));
    (void)worker->Stop();
    worker = &Start(config, {"worker", 0});
  }
  EXPECT_EQ(worker->End(), OkStatus());
  EXPECT_EQ(tasks_.front().End(), OkStatus());
  const std::vector<int> counts = Counts();
  ASSERT_EQ(counts.size(), size_t{kExamples});
  for (size_t rank : {0, 1}) {
    int least = counts[rank], most = counts[rank], short_of = 0;
    for (size_t i = rank; i < counts.size(); i += 2) {
      least = std::min(least, counts[i]);
      most = std::max(most, counts[i]);
    }
    // If no batch is lost, the counts differ by at most 1.
    for (size_t i = rank; i < counts.size(); i += 2) short_of += most - 1 > counts[i] ? 1 : 0;
    EXPECT_LE(short_of, rank == 0 ? 0 : 3 * kBatch) << "least " << least << ", most " << most;
  }
}

TEST_F(CountingTest, AGradientThatIsTooStaleIsDroppedAsAWholeAndReported) {
  constexpr int kSteps = 1200;
  Reserve(all_);
  config::TrainingConfig config = Counting("async", 1, kSteps);
  config.strategy.max_staleness = 0;
  for (const Task& task : all_) Start(config, task);
  RunningTask& chief = tasks_.front();
  ASSERT_TRUE(chief.AwaitStep(kSteps));
  const std::string problem = chief.Progress().problems["staleness"];
  EXPECT_NE(problem.find("staler than strategy.max_staleness"), std::string::npos) << problem;
  for (RunningTask& task : tasks_) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
  const std::vector<int> counts = Counts();
  ASSERT_EQ(counts.size(), size_t{kExamples});
  const int drawn = std::accumulate(counts.begin(), counts.end(), 0);
  EXPECT_EQ(drawn % kBatch, 0) << "a part of a gradient was applied";
  EXPECT_GE(drawn, kSteps * kBatch);
  EXPECT_LE(drawn, (kSteps + 1) * kBatch) << "dropped gradients are no steps";
}

}  // namespace
}  // namespace tfjob::train
