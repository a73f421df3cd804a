// Runs a job with the strategy multi_worker_mirrored as processes that a test starts, signals and
// restarts.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/cluster/cluster.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/progress/client.h"
#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"
#include "tests/processes/test_network.h"

namespace tfjob::processes {

// The settings of the training file that tests change.
struct GroupSettings {
  int max_steps = 2000;
  // The last batch of an epoch has one example, so two of three tasks have none.
  int examples = 481;
  int batch_size = 8;
  int global_batch_size = 0;  // if set, replaces batch_size
  size_t listed = 0;          // the number of tasks in the process's TF_CONFIG; 0: all
  bool shuffle = true;
  std::string strategy = "multi_worker_mirrored";  // may have further keys: "NAME, KEY: VALUE"
  std::string eval = {};                           // the section data.eval
  std::string optimizer = "{name: adam, learning_rate: 0.005}";
  int log_steps = 100;       // log every log_steps-th step
  int save_steps = 1000000;  // save a checkpoint every save_steps steps
};

class GroupJob {
 public:
  // If `network` is given, task i runs on its host i. The network must outlive the job.
  GroupJob(const std::string& name, const std::vector<cluster::Task>& tasks,
           const TestNetwork* network = nullptr)
      : folder_(FolderOf(name)), tasks_(tasks) {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    for (size_t i = 0; i < tasks.size(); ++i) {
      const int host = static_cast<int>(i);
      addresses_[tasks[i]] = network ? network->AddressOf(host) : wire::TestAddress();
      if (network) commands_[tasks[i]] = network->CommandOn(host);
    }
  }

  static std::string FolderOf(const std::string& name) {
    return testing::TempDir() + "/group_job_" + name;
  }

  // Starts a task, or a replacement for a task. The output of a replacement overwrites that of the
  // task's previous process.
  void Start(const cluster::Task& task, const GroupSettings& settings = {}) {
    const cluster::TfConfig config = ConfigOf(task, settings.listed);
    const std::string path = StrCat(folder_, "/", task.type, task.index);
    ASSERT_TRUE(WriteFileAtomically(path + ".yaml", TrainingFile(settings)).ok());
    ASSERT_TRUE(WriteFileAtomically(path + ".termination", "").ok());  // as the kubelet does
    std::vector<std::string> words = commands_[task];
    words.push_back(Runfile("runtime/cmd/tfjob-trainer"));
    words.push_back(StrCat("--config=", path, ".yaml"));
    programs_[task] = std::make_unique<Program>(
        words[0], std::vector(words.begin() + 1, words.end()),
        std::map<std::string, std::string>{{"TF_CONFIG", cluster::Print(config)},
                                           {"TFJOB_UID", "uid"},
                                           {"TFJOB_TERMINATION_LOG", path + ".termination"}},
        path + ".log");
  }
  void StartAll(const GroupSettings& settings = {}) {
    for (const cluster::Task& task : tasks_) Start(task, settings);
  }

  const std::string& AddressOf(const cluster::Task& task) const { return addresses_.at(task); }
  Program& of(const cluster::Task& task) { return *programs_.at(task); }
  std::string TerminationMessage(const cluster::Task& task) const {
    return ReadFile(StrCat(folder_, "/", task.type, task.index, ".termination")).value_or("");
  }
  // Waits until the task has logged a step. Every 100th step is logged.
  bool AwaitSteps(const cluster::Task& task) { return of(task).AwaitOutput(" result=", 60s); }
  // Returns the last step that the task has logged, or 0 if there is none.
  int64_t LastLogged(const cluster::Task& task) {
    const std::string output = of(task).Output(), key = " step step=";
    const size_t at = output.rfind(key);
    return at == std::string::npos ? 0 : std::stoll(output.substr(at + key.size()));
  }
  // Waits until the task has logged this step, or a later one.
  bool AwaitStep(const cluster::Task& task, int64_t step) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (LastLogged(task) < step) {
      if (of(task).Ended() || std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }
  // Sends the signal to the task, and expects it to exit with status 128 + signal.
  void End(const cluster::Task& task, int signal) {
    of(task).Signal(signal);
    EXPECT_EQ(of(task).AwaitEnd(60s), 128 + signal) << Outputs();
  }
  void AwaitEnd() {
    for (auto& [task, program] : programs_) {
      EXPECT_EQ(program->AwaitEnd(60s), 0) << cluster::ToString(task) << "\n" << Outputs();
    }
  }
  // Returns the step at which the task started to train, or -1 if it has not trained.
  int64_t FirstStep(const cluster::Task& task) {
    const std::string output = of(task).Output(), key = "from_step=";
    const size_t at = output.find(key);
    return at == std::string::npos ? -1 : std::stoll(output.substr(at + key.size()));
  }
  std::string Problem(const cluster::Task& task, const std::string& what) {
    const auto progress = progress::ProgressClient(addresses_.at(task)).Fetch(1s);
    if (!progress.ok()) return "";
    const auto found = progress->problems.find(what);
    return found == progress->problems.end() ? "" : found->second;
  }

  std::string Outputs() const {
    std::string all;
    for (const auto& [task, program] : programs_)
      all += StrCat("---- ", cluster::ToString(task), "\n", program->Output());
    return all;
  }
  int64_t LastCheckpoint() const {
    auto latest = io::LatestCheckpoint(folder_ + "/model");
    return latest.ok() && *latest ? (*latest)->step : -1;
  }
  // Returns the term of the last checkpoint; 0 if there is none.
  int64_t LastTerm() const { return io::RecordedTerm(folder_ + "/model").value_or(0); }
  // Returns the contents of the last checkpoint's files. The keys are the parts of their names
  // after the checkpoint's prefix.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    const std::string prefix = io::CheckpointPrefix(folder_ + "/model", LastCheckpoint());
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/model")) {
      const std::string path = entry.path().string();
      if (path.starts_with(prefix)) files[path.substr(prefix.size())] = *ReadFile(path);
    }
    return files;
  }
  std::vector<float> Weights() const { return Weights(folder_); }
  // Returns the weights in the checkpoint of this step of the job in `folder`.
  static std::vector<float> Weights(const std::string& folder,
                                    int64_t step = GroupSettings().max_steps) {
    std::vector<float> weights;
    auto reader = io::BundleReader::Open(io::CheckpointPrefix(folder + "/model", step));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return weights;
    for (const char* name : {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}) {
      const Tensor tensor = *(*reader)->Read(name);
      const auto values = tensor.data<float>();
      weights.insert(weights.end(), values.begin(), values.end());
    }
    return weights;
  }

 private:
  // Returns the TF_CONFIG of a task, which lists the first `listed` tasks (0: all).
  cluster::TfConfig ConfigOf(const cluster::Task& task, size_t listed) const {
    cluster::TfConfig config{.task = task};
    for (size_t i = 0; i < (listed == 0 ? tasks_.size() : listed); ++i) {
      std::vector<cluster::Job>& jobs = config.cluster.jobs;
      if (jobs.empty() || jobs.back().name != tasks_[i].type) {
        jobs.push_back({.name = tasks_[i].type});
      }
      jobs.back().addresses[tasks_[i].index] = addresses_.at(tasks_[i]);
    }
    return config;
  }

  std::string TrainingFile(const GroupSettings& settings) const {
    return StrCat(R"(
model:
  layers:
  - InputLayer: {batch_shape: [null, 6]}
  - Dense: {units: 16, activation: tanh}
  - Dense: {units: 1}
loss: mean_squared_error
optimizer: )",
                  settings.optimizer, R"(
data:
  train: {format: linear, weights: [1, -1, 3, 0.5, 2, -2], noise: 0.3, examples: )",
                  settings.examples, "}\n",
                  settings.eval.empty() ? "" : StrCat("  eval: ", settings.eval, "\n"),
                  "  shuffle: ", settings.shuffle ? "true" : "false",
                  settings.global_batch_size > 0
                      ? StrCat("\nglobal_batch_size: ", settings.global_batch_size)
                      : StrCat("\nbatch_size: ", settings.batch_size),
                  "\nmax_steps: ", settings.max_steps,
                  "\nthreads: 1\nseed: 7\nsave_checkpoints_steps: ", settings.save_steps,
                  "\nlog_step_count_steps: ", settings.log_steps,
                  "\nstrategy: {name: ", settings.strategy, "}\nmodel_dir: ", folder_, "/model\n");
  }

  const std::string folder_;
  const std::vector<cluster::Task> tasks_;
  std::map<cluster::Task, std::string> addresses_;
  // The prefix of each task's command, which enters its network namespace; empty without one.
  std::map<cluster::Task, std::vector<std::string>> commands_;
  std::map<cluster::Task, std::unique_ptr<Program>> programs_;
};

}  // namespace tfjob::processes
