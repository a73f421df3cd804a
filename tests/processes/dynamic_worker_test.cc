// Runs an elastic job with enableDynamicWorker in the local cluster of `tfjob run`: the real
// control loop starts real processes, whose TF_CONFIG lists no other task that trains. The number
// of workers is changed while they train. At the end, the weights must equal, up to rounding, those
// of a single task that took the same number of steps. They would differ if a step were lost or
// repeated: the learning rate is so low that the weights are still far from the minimum after the
// last step.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "operator/client/client.h"
#include "operator/local/process/options.h"
#include "operator/local/run/local_cluster.h"
#include "operator/local/run/workload.h"
#include "runtime/base/file.h"
#include "runtime/io/checkpoint_directory.h"
#include "tests/processes/group_job.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

using objects::Kind;

constexpr char kTrainingFile[] = R"(
model:
  layers:
  - InputLayer: {batch_shape: [null, 6]}
  - Dense: {units: 16, activation: tanh}
  - Dense: {units: 1}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 0.0001}
data:
  train: {format: linear, weights: [1, -1, 3, 0.5, 2, -2], noise: 0.3, examples: 50000}
global_batch_size: 24000
max_steps: 100000000
threads: 1
seed: 7
save_checkpoints_steps: 100000000
log_step_count_steps: 20
strategy: {name: multi_worker_mirrored, min_replicas: 2, max_replicas: 4, on_failure: shrink}
)";

class DynamicWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/training.yaml",
                                    StrCat(kTrainingFile, "model_dir: ", folder_, "/model\n"))
                    .ok());
    options_.state_dir = folder_ + "/state";
    options_.claims_dir = folder_ + "/claims";
    options_.environment = {{"PATH", "/usr/bin:/bin"}};
  }

  static std::string Trainer() {
    return std::filesystem::absolute(Runfile("runtime/cmd/tfjob-trainer")).string();
  }
  local::Workload JobWith(int workers) const {
    const auto replicas = [&](const char* type, int count) {
      return StrCat("    ", type, ":\n      replicas: ", count, R"(
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - {name: tensorflow, image: any, command: [")",
                    Trainer(), "\", \"--config=", folder_, "/training.yaml\"]}\n");
    };
    const std::string manifest = StrCat(R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: dynamic, namespace: default}
spec:
  enableDynamicWorker: true
  tfReplicaSpecs:
)",
                                        replicas("Chief", 1), replicas("Worker", workers));
    auto workload = local::MakeWorkload(manifest::CheckManifest(manifest, "job"), options_, "job");
    EXPECT_TRUE(workload.ok()) << workload.status();
    return *std::move(workload);
  }

  template <typename Condition>
  static bool Await(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(20ms);
    }
    return true;
  }
  std::string Log(const std::string& replica) const {
    const std::string path =
        process::LogPath(options_, "default", "dynamic-" + replica, "tensorflow");
    return ReadFile(path).value_or("");
  }
  std::string Logs() const {
    std::string logs;
    for (const char* replica : {"chief-0", "worker-0", "worker-1", "worker-2"})
      logs += StrCat("---- ", replica, "\n", Log(replica));
    return logs;
  }
  // Returns the last step that the replica has logged, or 0 if there is none.
  int64_t LastLogged(const std::string& replica) const {
    const std::string log = Log(replica), key = " step step=";
    const size_t at = log.rfind(key);
    return at == std::string::npos ? 0 : std::stoll(log.substr(at + key.size()));
  }
  bool AwaitFurtherSteps(const std::string& replica) const {
    const int64_t step = LastLogged(replica) + 40;
    return Await([&] { return LastLogged(replica) >= step; });
  }
  static bool AwaitNoPod(client::Client& client, const std::string& replica) {
    const client::Key pod{Kind::kPod, "default", "dynamic-" + replica};
    return Await([&] { return absl::IsNotFound(client.Get(pod).status()); });
  }
  static Status Scale(client::Client& client, int workers) {
    return client
        .Patch({Kind::kTFJob, "default", "dynamic"},
               {{"spec", {{"tfReplicaSpecs", {{"Worker", {{"replicas", workers}}}}}}}})
        .status();
  }
  // Returns the weights of a single task after this many steps.
  std::vector<float> WeightsOfOne(int64_t steps) const {
    const std::string folder = folder_ + "/alone";
    Program alone(Trainer(),
                  {StrCat("--config=", folder_, "/training.yaml"), "--set=strategy.min_replicas=1",
                   StrCat("--set=max_steps=", steps), StrCat("--set=model_dir=", folder, "/model")},
                  {{"TFJOB_TERMINATION_LOG", folder_ + "/termination"}}, folder_ + "/alone.log");
    EXPECT_EQ(alone.AwaitEnd(120s), 0) << alone.Output();
    return GroupJob::Weights(folder, steps);
  }

  const std::string folder_ =
      std::filesystem::absolute(testing::TempDir() + "/dynamic_worker_test").string();
  process::RunnerOptions options_;
};

TEST_F(DynamicWorkerTest, WorkersJoinAndLeaveAlthoughTfConfigListsNoOtherTask) {
  // The cluster reserves ports for three workers, and the job starts with two of them.
  const auto cluster = local::LocalCluster::Create(JobWith(3), options_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  client::Client& client = (*cluster)->client();
  ASSERT_TRUE((*cluster)->Submit(JobWith(2)).ok());
  for (const char* replica : {"chief-0", "worker-0", "worker-1"})
    ASSERT_TRUE(AwaitFurtherSteps(replica)) << Logs();
  EXPECT_NE(Log("worker-1").find("from=TFJOB_ADDRESS_PATTERNS"), std::string::npos) << Logs();

  ASSERT_TRUE(Scale(client, 3).ok());
  ASSERT_TRUE(AwaitFurtherSteps("worker-2")) << Logs();
  EXPECT_EQ(Log("chief-0").find("was lost"), std::string::npos) << Logs();

  ASSERT_TRUE(Scale(client, 1).ok());
  for (const char* replica : {"worker-1", "worker-2"})
    ASSERT_TRUE(AwaitNoPod(client, replica)) << Logs();
  for (const char* replica : {"chief-0", "worker-0"})
    ASSERT_TRUE(AwaitFurtherSteps(replica)) << Logs();

  ASSERT_TRUE(client.Delete({Kind::kTFJob, "default", "dynamic"}, {}).ok());
  for (const char* replica : {"chief-0", "worker-0"})
    ASSERT_TRUE(AwaitNoPod(client, replica)) << Logs();
  const auto last = io::LatestCheckpoint(folder_ + "/model");
  ASSERT_TRUE(last.ok() && *last) << last.status() << Logs();
  const int64_t steps = (*last)->step;
  EXPECT_GE(steps, 160);
  const std::vector<float> weights = GroupJob::Weights(folder_, steps),
                           expected = WeightsOfOne(steps);
  ASSERT_EQ(weights.size(), expected.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 5e-6) << i;
}

}  // namespace
}  // namespace tfjob::processes
