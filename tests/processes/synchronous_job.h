// Runs a synchronous job as processes that a test starts one by one. The job trains a small
// network. With the same settings, every run writes the same checkpoint.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/cluster/cluster.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"

namespace tfjob::processes {

inline constexpr int kSteps = 600;
inline constexpr int kBatch = 8;
inline constexpr char kTraining[] = R"(
model:
  layers:
  - InputLayer: {batch_shape: [null, 6]}
  - Dense: {units: 16, activation: tanh}
  - Dense: {units: 1}
loss: mean_squared_error
data:
  train:
    {format: linear, weights: [1, -1, 3, 0.5, 2, -2], bias: 0.5, noise: 0.3, examples: 1200}
  shuffle: false
threads: 1
seed: 7
save_checkpoints_steps: 1000000000
)";
// A run of the job in its own folder. Its tasks are started one by one.
class SynchronousJob {
 public:
  // `optimizer` is the optimizer section of the training file. `environment` is added to the
  // environment of the tasks. Without ps tasks, the training tasks all-reduce their gradients.
  SynchronousJob(std::string folder, const std::vector<cluster::Task>& tasks,
                 const std::string& optimizer, std::map<std::string, std::string> environment = {})
      : folder_(std::move(folder)), environment_(std::move(environment)) {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    for (const cluster::Task& task : tasks) {
      if (config_.cluster.jobs.empty() || config_.cluster.jobs.back().name != task.type) {
        config_.cluster.jobs.push_back({.name = task.type});
      }
      config_.cluster.jobs.back().addresses[task.index] = wire::TestAddress();
    }
    text_ =
        StrCat(kTraining, optimizer, "\nmax_steps: ", kSteps, "\nmodel_dir: ", folder_, "/model\n");
  }

  // Sets strategy.transport, which is used if the job has no ps tasks.
  void set_transport(std::string transport) { transport_ = std::move(transport); }

  void Start(const cluster::Task& task) {
    config_.task = task;
    // The shards are so small that each variable with several rows is on both servers. The packs
    // are so small that an exchange consists of several packs.
    Launch(StrCat(task.type, task.index), kBatch,
           config_.cluster.size("ps") > 0
               ? "{mode: sync, shard_bytes: 64}"
               : StrCat("{name: multi_worker_mirrored, ",
                        "bytes_per_pack: 256, transport: ", transport_, "}"),
           {{"TF_CONFIG", cluster::Print(config_)}, {"TFJOB_UID", "uid"}});
  }
  // Starts a single task instead of the job. Each batch of this task has as many examples as a
  // batch of `tasks` training tasks together.
  void StartSingle(int tasks) { Launch("single", kBatch * tasks, "{name: one_device}", {}); }

  void AwaitEnd() {
    for (auto& [name, program] : programs_) {
      EXPECT_EQ(program->AwaitEnd(60s), 0) << name << "\n" << program->Output();
    }
  }

  // Returns the output of a task. `name` is the name of the task, such as "worker0".
  std::string Output(const std::string& name) const { return programs_.at(name)->Output(); }
  // Returns the contents of the last checkpoint's files, by name.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    const std::string prefix = io::CheckpointPrefix(folder_ + "/model", kSteps);
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/model")) {
      const std::string path = entry.path().string();
      if (path.starts_with(prefix)) files[path.substr(prefix.size())] = *ReadFile(path);
    }
    return files;
  }
  std::vector<float> Weights() const {
    std::vector<float> weights;
    auto reader = io::BundleReader::Open(io::CheckpointPrefix(folder_ + "/model", kSteps));
    if (!reader.ok()) return weights;
    for (const char* name : {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}) {
      const Tensor tensor = *(*reader)->Read(name);
      const auto values = tensor.data<float>();
      weights.insert(weights.end(), values.begin(), values.end());
    }
    return weights;
  }

 private:
  void Launch(const std::string& name, int batch, const std::string& strategy,
              std::map<std::string, std::string> environment) {
    environment.insert(environment_.begin(), environment_.end());
    const std::string file = StrCat(folder_, "/", name, ".yaml");
    const std::string text = StrCat(text_, "batch_size: ", batch, "\nstrategy: ", strategy, "\n");
    ASSERT_TRUE(WriteFileAtomically(file, text).ok());
    programs_[name] = std::make_unique<Program>(Runfile("runtime/cmd/tfjob-trainer"),
                                                std::vector{StrCat("--config=", file)}, environment,
                                                StrCat(folder_, "/", name, ".log"));
  }

  const std::string folder_;
  const std::map<std::string, std::string> environment_;
  std::string text_;
  std::string transport_ = "auto";
  cluster::TfConfig config_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

}  // namespace tfjob::processes
