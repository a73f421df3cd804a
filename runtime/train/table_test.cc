// Trains and evaluates a model with a table that only the parameter servers hold.
#include <gtest/gtest.h>

#include <filesystem>
#include <list>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/npz.h"
#include "runtime/train/test_job.h"

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

  // The label of a pair of ids is a tenth of the sum of their last digits.
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

  config::TrainingConfig Config(const std::string& model_dir,
                                const std::string& table_bytes) const {
    const std::string text = StrCat(
        "model: {layers: [{Embedding: {input_dim: ", kRows,
        ", output_dim: 8}}, Flatten, "
        "{Dense: {units: 1}}]}\n"
        "loss: mean_squared_error\noptimizer: {name: adagrad, learning_rate: 0.5, use_ema: true}\n"
        "data:\n  train: {format: npz, file: ",
        folder_, "/train.npz}\n", "  eval: {format: npz, file: ", folder_, "/eval.npz}\n",
        "strategy: {mode: sync, shard_bytes: 1Ki, table_bytes: ", table_bytes, "}\n",
        "max_steps: 12\nthreads: 1\nlog_step_count_steps: 0\nmodel_dir: ", folder_, "/", model_dir,
        "\n");
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config::Validate(*config), OkStatus());
    return *std::move(config);
  }

  // Runs the job to its end. Returns the loss that the last task has seen.
  double Run(const config::TrainingConfig& config, const std::vector<Task>& all) {
    for (const Task& task : all) AddressOf(task);
    std::list<RunningTask> tasks;
    for (const Task& task : all) tasks.emplace_back(config, Static(task, all));
    for (RunningTask& task : tasks) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
    EXPECT_EQ(tasks.back().Progress().step, 12);
    return tasks.back().Progress().loss.value_or(-1);
  }

  const std::string folder_ = testing::TempDir() + "/table_job_test";
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

}  // namespace
}  // namespace tfjob::train
