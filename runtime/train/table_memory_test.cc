// Tests that the chief and the workers do not need memory for the table that they read from a
// weights file, train, save, restore and evaluate. Each of these tasks is a separate process, so
// its memory can be measured separately from that of the servers. The test subtracts the growth in
// the same job with a small table, because every task needs that much memory regardless of the
// table.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/npz.h"
#include "runtime/io/safetensors.h"
#include "runtime/train/test_job.h"
#include "tests/sanitized.h"

namespace tfjob::train {
namespace {

constexpr int64_t kRows = 250'000, kColumns = 64;
// The size of the table's values. Adagrad's accumulators have the same size.
constexpr int64_t kTableBytes = kRows * kColumns * int64_t{sizeof(float)};

// Returns the peak memory of this process so far, in bytes.
int64_t PeakMemory() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return -1;
}

// A child process that waits for a text, calls a function with the text, and sends the result back.
// Must be created before the parent process starts threads.
class Child {
 public:
  template <typename Work>
  explicit Child(const Work& work) {
    int down[2] = {}, up[2] = {};
    EXPECT_EQ(pipe(down), 0);
    EXPECT_EQ(pipe(up), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(down[1]);
      std::string text;
      char buffer[512];
      ssize_t n = 0;
      while (text.find('\0') == std::string::npos &&
             (n = read(down[0], buffer, sizeof(buffer))) > 0)
        text.append(buffer, static_cast<size_t>(n));
      const int64_t result = n > 0 ? work(text) : 0;
      _exit(write(up[1], &result, sizeof(result)) == sizeof(result) ? 0 : 1);
    }
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
  }
  // If Begin was never called, closing the pipe ends the process.
  ~Child() {
    close(to_);
    close(from_);
    int status = -1;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    EXPECT_EQ(status, 0);
  }

  void Begin(const std::string& text) const {
    EXPECT_EQ(write(to_, text.c_str(), text.size() + 1), static_cast<ssize_t>(text.size() + 1));
  }
  int64_t Result() const {
    int64_t result = -1;
    EXPECT_EQ(read(from_, &result, sizeof(result)), static_cast<ssize_t>(sizeof(result)));
    return result;
  }

 private:
  int to_ = -1, from_ = -1;
  pid_t pid_ = -1;
};

class TableMemory : public testing::Test, public TestCluster {
 protected:
  struct Job {
    std::string name;  // of its model_dir
    int64_t rows = 0;
    int64_t max_steps = 0;
    int32_t attempt = 0;
    std::string weights = "";  // in folder_: what to start from
  };
  struct Growth {
    int64_t chief = 0, worker = 0;
  };

  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  static void WriteExamples(const std::string& path, int64_t rows) {
    Tensor ids(DType::kInt32, {64, 2}), labels(DType::kFloat32, {64});
    for (int64_t i = 0; i < 128; ++i)
      ids.data<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i * 7919 % rows);
    std::ranges::fill(labels.data<float>(), 1.f);
    const std::vector<std::pair<std::string, Tensor>> arrays = {{"x", ids}, {"y", labels}};
    ASSERT_EQ(io::WriteNpz(path, arrays), OkStatus());
  }

  // Writes weights in which every element of row r is r.
  static void WriteWeights(const std::string& path, int64_t rows) {
    Tensor table(DType::kFloat32, {rows, kColumns});
    for (int64_t i = 0; i < rows * kColumns; ++i)
      table.data<float>()[static_cast<size_t>(i)] = static_cast<float>(i / kColumns);
    const io::NamedTensors tensors = {{"embedding/embeddings", table},
                                      {"dense/kernel", Tensor(DType::kFloat32, {2 * kColumns, 1})},
                                      {"dense/bias", Tensor(DType::kFloat32, {1})}};
    ASSERT_EQ(io::WriteSafetensors(path, tensors), OkStatus());
  }

  // Expects that a checkpoint has the given value in a row that is not trained.
  void ExpectGiven(const Job& job) const {
    const auto saved = io::LatestCheckpoint(folder_ + "/" + job.name);
    ASSERT_TRUE(saved.ok() && saved->has_value()) << saved.status();
    const auto table = (*io::BundleReader::Open((*saved)->prefix))->Store("embedding/embeddings");
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> row(kColumns);
    const std::vector<int64_t> indices = {job.rows - 2};
    ASSERT_EQ(table->ReadRows(indices, std::as_writable_bytes(std::span(row))), OkStatus());
    EXPECT_EQ(row, std::vector<float>(kColumns, static_cast<float>(job.rows - 2))) << job.name;
  }

  config::TrainingConfig Config(const Job& job) const {
    const std::string examples = StrCat("{format: npz, file: ", folder_, "/", job.rows, ".npz}\n");
    const std::string text =
        StrCat("model: {layers: [{Embedding: {input_dim: ", job.rows, ", output_dim: ", kColumns,
               "}}, Flatten, {Dense: {units: 1}}]",
               job.weights.empty() ? "" : StrCat(", weights: ", folder_, "/", job.weights), "}\n",
               "loss: mean_squared_error\noptimizer: {name: adagrad, learning_rate: 0.1}\n",
               "data:\n  train: ", examples, "  eval: ", examples,
               "strategy: {mode: sync, shard_bytes: 4Mi, table_bytes: 1Ki}\n",
               "max_steps: ", job.max_steps, "\nthreads: 1\nlog_step_count_steps: 0\n",
               "model_dir: ", folder_, "/", job.name, "\n");
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }

  // Runs a task of a cluster. `text` contains the addresses of kTasks, in the same order. Returns
  // the growth of this process's peak memory in bytes, or -1 if the task failed.
  int64_t GrowthOf(const Task& task, const Job& job, const std::string& text) const {
    std::istringstream words(text);
    cluster::TfConfig config{.task = task};
    std::map<std::string, cluster::Job> jobs;
    for (const Task& one : kTasks) {
      jobs[one.type].name = one.type;
      words >> jobs[one.type].addresses[one.index];
    }
    for (auto& [name, one] : jobs) config.cluster.jobs.push_back(std::move(one));
    const int64_t before = PeakMemory();
    const Status ended = RunningTask(Config(job), config, job.attempt).End();
    if (!ended.ok()) std::cerr << task.type << ": " << ended << "\n";
    return ended.ok() ? PeakMemory() - before : -1;
  }

  std::unique_ptr<Child> StartChild(const Task& task, const Job& job) const {
    return std::make_unique<Child>(
        [this, task, job](const std::string& text) { return GrowthOf(task, job, text); });
  }

  // Runs the jobs one after the other. The servers run in this process, and each chief and each
  // worker in a separate process.
  std::vector<Growth> Run(const std::vector<Job>& jobs) {
    std::vector<std::unique_ptr<Child>> chiefs, workers;
    for (const Job& job : jobs) {
      chiefs.push_back(StartChild(kTasks[0], job));
      workers.push_back(StartChild(kTasks[1], job));
    }
    for (const Job& job : jobs) {
      WriteExamples(StrCat(folder_, "/", job.rows, ".npz"), job.rows);
      if (job.weights.ends_with(".safetensors"))
        WriteWeights(StrCat(folder_, "/", job.weights), job.rows);
    }
    std::string addresses;
    for (const Task& task : kTasks) addresses += AddressOf(task) + "\n";
    std::vector<Growth> growths;
    for (size_t i = 0; i < jobs.size(); ++i) {
      std::list<RunningTask> servers;
      for (const Task& task : kTasks) {
        if (task.type != "ps") continue;
        servers.emplace_back(Config(jobs[i]), Static(task, kTasks), jobs[i].attempt);
      }
      chiefs[i]->Begin(addresses);
      workers[i]->Begin(addresses);
      growths.push_back({chiefs[i]->Result(), workers[i]->Result()});
      for (RunningTask& server : servers) EXPECT_EQ(server.End(), OkStatus());
      EXPECT_GT(growths.back().chief, 0);
      EXPECT_GT(growths.back().worker, 0);
    }
    return growths;
  }

  const std::vector<Task> kTasks = {{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}};
  const std::string folder_ = testing::TempDir() + "/table_memory_test";
};

TEST_F(TableMemory, NeitherChiefNorWorkerHoldsTheTable) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need memory of their own";
  const std::vector<Job> small = {{"small", 1000, 3},
                                  {"small", 1000, 6, /*attempt=*/1},  // restores
                                  {"small_given", 1000, 3, 0, "small.safetensors"},
                                  {"small_continued", 1000, 3, 0, "small_given"}};
  const std::vector<Job> large = {{"large", kRows, 3},
                                  {"large", kRows, 6, /*attempt=*/1},
                                  {"large_given", kRows, 3, 0, "large.safetensors"},
                                  {"large_continued", kRows, 3, 0, "large_given"}};
  std::vector<Job> jobs = small;
  jobs.insert(jobs.end(), large.begin(), large.end());
  const std::vector<Growth> growths = Run(jobs);
  ASSERT_EQ(growths.size(), jobs.size());
  for (size_t i = 0; i < small.size(); ++i) {
    const int64_t chief = growths[small.size() + i].chief - growths[i].chief;
    const int64_t worker = growths[small.size() + i].worker - growths[i].worker;
    EXPECT_LT(chief, kTableBytes / 2) << large[i].name << " " << large[i].max_steps;
    EXPECT_LT(worker, kTableBytes / 4) << large[i].name << " " << large[i].max_steps;
    RecordProperty(StrCat("chief_", i), StrCat(chief));
    RecordProperty(StrCat("worker_", i), StrCat(worker));
  }
  const auto saved = io::LatestCheckpoint(folder_ + "/large");
  ASSERT_TRUE(saved.ok() && saved->has_value()) << saved.status();
  EXPECT_EQ((*saved)->step, 6);
  ExpectGiven(large[2]);
  ExpectGiven(large[3]);
}

}  // namespace
}  // namespace tfjob::train
