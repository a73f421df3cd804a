// Runs a synchronous job twice, as processes that start in a random order over three seconds. Both
// runs must give the same checkpoint, byte for byte, and the same weights as a single task whose
// batch is the sum of theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/cluster/cluster.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/rpc/server.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

using cluster::Task;

constexpr int kSteps = 600;
constexpr int kBatch = 8;
constexpr int kTrainingTasks = 3;
constexpr char kTraining[] = R"(
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
const std::vector<Task> kAll = {{"chief", 0}, {"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}};

// A run of the job, in its own folder. Its tasks are started one by one.
class Attempt {
 public:
  Attempt(std::string folder, const std::string& optimizer) : folder_(std::move(folder)) {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(MakeDirectories(folder_).ok());
    std::vector<std::unique_ptr<rpc::Server>> held;
    for (const Task& task : kAll) {
      held.push_back(*rpc::Server::Start({.host = "127.0.0.1"}));
      if (config_.cluster.jobs.empty() || config_.cluster.jobs.back().name != task.type) {
        config_.cluster.jobs.push_back({.name = task.type});
      }
      config_.cluster.jobs.back().addresses[task.index] = StrCat("127.0.0.1:", held.back()->port());
    }
    text_ =
        StrCat(kTraining, optimizer, "\nmax_steps: ", kSteps, "\nmodel_dir: ", folder_, "/model\n");
  }

  void Start(const Task& task) {
    config_.task = task;
    // The shards are small, so each variable with several rows is on both servers.
    Launch(StrCat(task.type, task.index), kBatch, "{mode: sync, shard_bytes: 64}",
           {{"TF_CONFIG", cluster::Print(config_)}, {"TFJOB_UID", "uid"}});
  }
  void StartSingle() { Launch("single", kBatch * kTrainingTasks, "{name: one_device}", {}); }

  void AwaitEnd() {
    for (auto& [name, program] : programs_) {
      EXPECT_EQ(program->AwaitEnd(60s), 0) << name << "\n" << program->Output();
    }
  }

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
              const std::map<std::string, std::string>& environment) {
    const std::string file = StrCat(folder_, "/", name, ".yaml");
    const std::string text = StrCat(text_, "batch_size: ", batch, "\nstrategy: ", strategy, "\n");
    ASSERT_TRUE(WriteFileAtomically(file, text).ok());
    programs_[name] = std::make_unique<Program>(Runfile("runtime/cmd/tfjob-trainer"),
                                                std::vector{StrCat("--config=", file)}, environment,
                                                StrCat(folder_, "/", name, ".log"));
  }

  const std::string folder_;
  std::string text_;
  cluster::TfConfig config_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

// Starts the tasks of all runs, each at a random moment within three seconds.
void StartAtRandom(std::vector<Attempt*> runs, uint64_t seed) {
  struct Begin {
    Duration at;
    Attempt* run;
    Task task;
  };
  std::mt19937_64 random(seed);
  std::vector<Begin> begins;
  for (Attempt* run : runs) {
    for (const Task& task : kAll) {
      begins.push_back({std::chrono::milliseconds(random() % 3000), run, task});
    }
  }
  std::ranges::sort(begins, {}, &Begin::at);
  const auto start = std::chrono::steady_clock::now();
  for (const Begin& begin : begins) {
    std::this_thread::sleep_until(start + begin.at);
    begin.run->Start(begin.task);
  }
}

double RelativeDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    norm += std::pow(b[i], 2);
  }
  return std::sqrt(difference / norm);
}

class ReproducibleTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ReproducibleTest, TwoRunsAreEqualAndLikeOneTask) {
  const std::string folder = StrCat(testing::TempDir(), "/reproducible_", GetParam().first);
  const std::string optimizer = GetParam().second;
  Attempt first(folder + "_1", optimizer), second(folder + "_2", optimizer);
  Attempt single(folder + "_single", optimizer);
  StartAtRandom({&first, &second}, 11);
  single.StartSingle();
  for (Attempt* run : {&first, &second, &single}) run->AwaitEnd();
  const auto files = first.Files();
  ASSERT_EQ(files.size(), 2u) << "an index and its data";
  EXPECT_TRUE(files == second.Files()) << "the checkpoints differ";
  const std::vector<float> weights = first.Weights(), expected = single.Weights();
  ASSERT_EQ(weights.size(), 6u * 16 + 16 + 16 + 1);
  ASSERT_EQ(expected.size(), weights.size());
  EXPECT_LE(RelativeDifference(weights, expected), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    , ReproducibleTest,
    testing::Values(std::pair("adam", "optimizer: {name: adam, learning_rate: 0.005}"),
                    std::pair("clipped",
                              "optimizer: {name: sgd, learning_rate: 0.05, global_clipnorm: 0.5}")),
    [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace tfjob::processes
