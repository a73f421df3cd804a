// Trains and evaluates a model with a table that is stored only on the parameter servers.
#include <gtest/gtest.h>

#include <filesystem>
#include <list>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/npz.h"
#include "runtime/train/test_job.h"
#include "tests/faults/faulty_files.h"

namespace tfjob::train {
namespace {

constexpr int64_t kRows = 500;

class TableJob : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    WriteExamples("train", 96);
    WriteExamples("eval", 37);
  }

  // Writes examples of pairs of ids. The label of a pair is a tenth of the sum of the last digits
  // of its ids.
  void WriteExamples(const std::string& name, int64_t count) const {
    Tensor ids(DType::kInt32, {count, 2}), labels(DType::kFloat32, {count});
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        const int64_t id = (i * 37 + j * 211) % kRows;
        ids.data<int32_t>()[static_cast<size_t>(2 * i + j)] = static_cast<int32_t>(id);
        labels.data<float>()[static_cast<size_t>(i)] += 0.1f * static_cast<float>(id % 10);
      }
    }
    const std::vector<std::pair<std::string, Tensor>> arrays = {{"x", ids}, {"y", labels}};
    ASSERT_EQ(io::WriteNpz(StrCat(folder_, "/", name, ".npz"), arrays), OkStatus());
  }

  config::TrainingConfig Config(const std::string& model_dir, const std::string& table_bytes,
                                const std::string& more = "max_steps: 12\n") const {
    const std::string text = StrCat(
        "model: {layers: [{Embedding: {input_dim: ", kRows,
        ", output_dim: 8}}, Flatten, "
        "{Dense: {units: 1}}]}\n"
        "loss: mean_squared_error\noptimizer: {name: adagrad, learning_rate: 0.5, use_ema: true}\n"
        "data:\n  train: {format: npz, file: ",
        folder_, "/train.npz}\n", "  eval: {format: npz, file: ", folder_, "/eval.npz}\n",
        "strategy: {mode: sync, shard_bytes: 1Ki, table_bytes: ", table_bytes, "}\n",
        "threads: 1\nlog_step_count_steps: 0\nmodel_dir: ", folder_, "/", model_dir, "\n", more);
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config::Validate(*config), OkStatus());
    return *std::move(config);
  }

  // Runs a new attempt of the job to completion. Returns the last loss that the last task has
  // reported.
  double Run(const config::TrainingConfig& config, const std::vector<Task>& all,
             int64_t last_step = 12) {
    for (const Task& task : all) AddressOf(task);
    std::list<RunningTask> tasks;
    for (const Task& task : all) tasks.emplace_back(config, Static(task, all), attempt_);
    ++attempt_;
    for (RunningTask& task : tasks) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
    EXPECT_EQ(tasks.back().Progress().step, last_step);
    return tasks.back().Progress().loss.value_or(-1);
  }

  const std::string folder_ = testing::TempDir() + "/table_job_test";
  int32_t attempt_ = 0;
};

TEST_F(TableJob, TrainsAndIsEvaluatedAsWithTheWholeTable) {
  const std::vector<Task> evaluator = {
      {"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}, {"evaluator", 0}};
  const std::vector<Task> chief = {{"ps", 0}, {"ps", 1}, {"worker", 0}, {"chief", 0}};
  const double whole = Run(Config("whole", "0"), evaluator);
  EXPECT_GT(whole, 0);
  EXPECT_EQ(Run(Config("rows", "1Ki"), evaluator), whole);
  EXPECT_EQ(Run(Config("chief", "1Ki"), chief), whole);
}

TEST_F(TableJob, ContinuesWithTheTableOfItsCheckpoint) {
  const std::vector<Task> all = {{"ps", 0}, {"ps", 1}, {"worker", 0}, {"chief", 0}};
  // Trains for 5 steps with `first` as strategy.table_bytes, and continues the job with `second`.
  // Returns the last loss.
  const auto run_twice = [&](const std::string& folder, const std::string& first,
                             const std::string& second) {
    Run(Config(folder, first, "max_steps: 5\n"), all, 5);
    return Run(Config(folder, second), all);
  };
  const double whole = run_twice("both_whole", "0", "0");
  EXPECT_EQ(run_twice("both_rows", "1Ki", "1Ki"), whole);
  EXPECT_EQ(run_twice("first_rows", "1Ki", "0"), whole);
  EXPECT_EQ(run_twice("first_whole", "0", "1Ki"), whole);
}

// Returns the step of the newest checkpoint, or 0 if there is none.
int64_t SavedStep(const std::string& folder) {
  const auto latest = io::LatestCheckpoint(folder);
  return latest.ok() && *latest ? (*latest)->step : 0;
}

// A save reads the table from its server. If the server is lost during the save, the previous
// checkpoint stays the newest one, and the new server is filled from it.
TEST_F(TableJob, ASaveThatLosesAServerLeavesTheCheckpointBefore) {
  const std::vector<Task> all = {{"chief", 0}, {"ps", 0}};
  for (const Task& task : all) AddressOf(task);
  Mortal server(0, AddressOf({"ps", 0}));
  server.Start(1);
  faults::FaultyFiles disk;
  TaskOptions options{
      .config = Config("lost", "1Ki",
                       "max_steps: 100000000\nsave_checkpoints_steps: 20\nsave_summary_steps: 0\n"),
      .tf_config = Static({"chief", 0}, all),
      .job = {"uid", 0},
      .files = &disk};
  RunningTask chief(std::move(options));
  const std::string folder = folder_ + "/lost";
  ASSERT_TRUE(chief.Await([&](const progress::Progress&) { return SavedStep(folder) > 0; }));
  disk.Hang(true);
  ASSERT_TRUE(disk.AwaitHangingWrite());
  const int64_t saved = SavedStep(folder);
  EXPECT_TRUE(chief.AwaitStep(saved + 30)) << "the disk does not stop training";
  testing::internal::CaptureStderr();
  server.Kill();
  server.Start(2);
  disk.Hang(false);
  EXPECT_TRUE(chief.Await([&](const progress::Progress&) {
    return SavedStep(folder) > saved + 20;
  })) << "the job goes on, and saves again";
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string says = " go back to a saved state step=";
  const size_t said = log.find(says);
  ASSERT_NE(said, std::string::npos) << log;
  // If the whole table had already been read, the checkpoint that was being written is the newest.
  EXPECT_GE(std::stoll(log.substr(said + says.size())), saved);
  EXPECT_TRUE(absl::IsCancelled(chief.Stop()));
  // The last checkpoint is complete, and no other files are left.
  const auto latest = io::LatestCheckpoint(folder);
  ASSERT_TRUE(latest.ok() && *latest);
  const auto reader = io::BundleReader::Open((*latest)->prefix);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const auto& [name, entry] : (*reader)->entries())
    EXPECT_TRUE((*reader)->Read(name).ok()) << name;
  const auto files = ListDirectory(folder);
  ASSERT_TRUE(files.ok()) << files.status();
  for (const std::string& file : *files) EXPECT_EQ(file.find(".tmp"), std::string::npos) << file;
}

}  // namespace
}  // namespace tfjob::train
