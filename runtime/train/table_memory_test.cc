// Tests that a worker needs less memory than the table that it trains. The worker is a separate
// process, so that its memory can be measured apart from that of the servers and the chief.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <list>
#include <sstream>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/npz.h"
#include "runtime/train/test_job.h"
#include "tests/sanitized.h"

namespace tfjob::train {
namespace {

constexpr int64_t kRows = 250'000, kColumns = 64;
constexpr int64_t kTableBytes = kRows * kColumns * int64_t{sizeof(float)};

// Returns the most memory that this process has used so far, in bytes.
int64_t PeakMemory() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return -1;
}

class TableMemory : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    Tensor ids(DType::kInt32, {64, 2}), labels(DType::kFloat32, {64});
    for (int64_t i = 0; i < 128; ++i)
      ids.data<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i * 7919 % kRows);
    std::ranges::fill(labels.data<float>(), 1.f);
    const std::vector<std::pair<std::string, Tensor>> arrays = {{"x", ids}, {"y", labels}};
    ASSERT_EQ(io::WriteNpz(folder_ + "/train.npz", arrays), OkStatus());
  }

  config::TrainingConfig Config() const {
    const std::string text =
        StrCat("model: {layers: [{Embedding: {input_dim: ", kRows, ", output_dim: ", kColumns,
               "}}, Flatten, {Dense: {units: 1}}]}\n",
               "loss: mean_squared_error\noptimizer: {name: adagrad, learning_rate: 0.1}\n",
               "data:\n  train: {format: npz, file: ", folder_, "/train.npz}\n",
               "strategy: {mode: sync, shard_bytes: 4Mi, table_bytes: 1Mi}\n",
               "max_steps: 3\nthreads: 1\nlog_step_count_steps: 0\n");
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }

  // Runs the worker of a cluster. `addresses` are the addresses of kTasks, in that order. Returns
  // by how many bytes this process's peak memory grew; -1 if the worker failed.
  int64_t GrowthOfWorker(const std::vector<std::string>& addresses) const {
    cluster::TfConfig config{.task = {"worker", 0}};
    for (const char* type : {"chief", "worker", "ps"}) {
      cluster::Job job{.name = type};
      for (size_t i = 0; i < kTasks.size(); ++i) {
        if (kTasks[i].type == type) job.addresses[kTasks[i].index] = addresses[i];
      }
      config.cluster.jobs.push_back(std::move(job));
    }
    const int64_t before = PeakMemory();
    return RunningTask(Config(), config).End().ok() ? PeakMemory() - before : -1;
  }

  const std::vector<Task> kTasks = {{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}};
  const std::string folder_ = testing::TempDir() + "/table_memory_test";
};

// Two pipes, and the process at their other ends.
struct Child {
  int to = -1, from = -1;
  pid_t pid = -1;
};

// Starts a process that reads a text from its pipe, calls work(text) and sends the result back.
template <typename Work>
Child Fork(const Work& work) {
  int down[2] = {}, up[2] = {};
  EXPECT_EQ(pipe(down), 0);
  EXPECT_EQ(pipe(up), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(down[1]);
    std::string text;
    char buffer[512];
    for (ssize_t n = 0; (n = read(down[0], buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    const int64_t result = work(text);
    _exit(write(up[1], &result, sizeof(result)) == sizeof(result) ? 0 : 1);
  }
  close(down[0]);
  close(up[1]);
  return {down[1], up[0], pid};
}

TEST_F(TableMemory, AWorkerNeedsLessThanItsTable) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need memory of their own";
  // Fork while this process has no other threads.
  const Child worker = Fork([this](const std::string& text) {
    std::istringstream words(text);
    std::vector<std::string> addresses(kTasks.size());
    for (std::string& address : addresses) words >> address;
    return GrowthOfWorker(addresses);
  });
  std::string addresses;
  for (const Task& task : kTasks) addresses += AddressOf(task) + "\n";
  ASSERT_EQ(write(worker.to, addresses.data(), addresses.size()),
            static_cast<ssize_t>(addresses.size()));
  close(worker.to);
  std::list<RunningTask> tasks;
  for (const Task& task : kTasks) {
    if (task.type != "worker") tasks.emplace_back(Config(), Static(task, kTasks));
  }
  for (RunningTask& task : tasks) EXPECT_EQ(task.End(), OkStatus()) << task.Progress().task;
  int64_t growth = -1;
  EXPECT_EQ(read(worker.from, &growth, sizeof(growth)), static_cast<ssize_t>(sizeof(growth)));
  close(worker.from);
  int status = -1;
  EXPECT_EQ(waitpid(worker.pid, &status, 0), worker.pid);
  EXPECT_EQ(status, 0);
  EXPECT_GT(growth, 0);
  EXPECT_LT(growth, kTableBytes / 2);
  RecordProperty("growth", StrCat(growth));
}

}  // namespace
}  // namespace tfjob::train
