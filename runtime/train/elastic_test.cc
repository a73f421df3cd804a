// Trains with a group whose number of tasks changes. The tasks are threads of one process,
// connected over loopback. At the end of a run, the variables must equal those of a group of one
// task that took the same steps. They would differ if a step were lost or repeated, or if examples
// were left out or used twice: the learning rate is so low that the variables are still far from
// the minimum after the last step, so that the effect of every step remains.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/train/job/group_tasks.h"
#include "runtime/train/test_job.h"
#include "runtime/wire/loopback_ports.h"
#include "runtime/wire/socket.h"

namespace tfjob::train {
namespace {

constexpr int kSteps = 30000;

class ElasticTest : public testing::Test, public TestCluster {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  // There are 50 examples and 24 per step, so the last batch of an epoch has only 2.
  config::TrainingConfig Config(const std::string& model_dir, const std::string& more) const {
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 2]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 0.00002}
data:
  train: {format: linear, weights: [2.0, -1.0], bias: 1.0, noise: 0.1, examples: 50}
threads: 1
seed: 5
global_batch_size: 24
save_checkpoints_steps: 1000000
log_step_count_steps: 0
model_dir: )",
                                    folder_, "/", model_dir, "\n", more);
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  config::TrainingConfig Elastic(const std::string& model_dir, int least, int max_steps) const {
    return Config(model_dir, StrCat("max_steps: ", max_steps,
                                    "\nstrategy: {name: multi_worker_mirrored, min_replicas: ",
                                    least, ", max_replicas: 4, on_failure: shrink}\n"));
  }
  // Starts task `index` (the chief is task 0) of a job that has `size` tasks by now.
  std::unique_ptr<RunningTask> Start(const config::TrainingConfig& config, size_t index,
                                     size_t size) {
    const std::vector<Task> listed(kTasks.begin(), kTasks.begin() + static_cast<ptrdiff_t>(size));
    return std::make_unique<RunningTask>(config, Static(kTasks[index], listed));
  }
  // Starts a task of a job with enableDynamicWorker: its TF_CONFIG lists only the task itself.
  std::unique_ptr<RunningTask> StartSparse(const config::TrainingConfig& config, size_t index) {
    const int32_t port = first_port_ + static_cast<int32_t>(index);
    const std::string own =
        index == 0 ? StrCat(R"("chief":["127.0.0.1:)", port, R"("],"worker":{})")
                   : StrCat(R"("worker":{")", index - 1, R"(":"127.0.0.1:)", port, R"("})");
    cluster::TfConfig sparse = *cluster::ParseTfConfig(
        StrCat(R"({"cluster":{)", own, R"(},"task":{"type":")", kTasks[index].type, R"(","index":)",
               kTasks[index].index, "}}"));
    sparse.chief_type = "chief";
    sparse.patterns = {{"chief", {.before = "127.0.0.1:", .first = first_port_}},
                       {"worker", {.before = "127.0.0.1:", .first = first_port_ + 1}}};
    auto listed = WithGroupTasks(config.strategy, sparse);
    EXPECT_TRUE(listed.ok()) << listed.status();
    return std::make_unique<RunningTask>(config, *std::move(listed));
  }
  // Returns the variables of the last checkpoint.
  std::vector<float> Variables(const std::string& model_dir) const {
    std::vector<float> values;
    auto reader = io::BundleReader::Open(io::CheckpointPrefix(folder_ + "/" + model_dir, kSteps));
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return values;
    for (const char* name : {"dense/kernel", "dense/bias"}) {
      const Tensor tensor = *(*reader)->Read(name);
      const auto part = tensor.data<float>();
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }
  // Waits until the task trains together with `others` other tasks.
  static bool AwaitOthers(RunningTask& task, size_t others) {
    return task.Await([others](const progress::Progress& p) { return p.peers.size() == others; });
  }
  static bool AwaitFurtherSteps(RunningTask& task) {
    return task.AwaitStep(task.Progress().step + 200);
  }

  const std::vector<Task> kTasks = {{"chief", 0}, {"worker", 0}, {"worker", 1}, {"worker", 2}};
  wire::LoopbackPorts ports_;
  const int32_t first_port_ = ports_.Choose(4).value();
  const std::string folder_ = testing::TempDir() + "/elastic_test";
};

// The TF_CONFIG of each process lists only the tasks that the job had when the process started.
TEST_F(ElasticTest, OneTaskThenThreeThenTwoThenFourTakeTheStepsOfOne) {
  const config::TrainingConfig config = Elastic("resized", 1, kSteps);
  std::vector<std::unique_ptr<RunningTask>> running(4);
  running[0] = Start(config, 0, 1);
  ASSERT_TRUE(running[0]->AwaitStep(100)) << "it does not wait for others";
  running[1] = Start(config, 1, 3);
  running[2] = Start(config, 2, 3);
  ASSERT_TRUE(AwaitOthers(*running[0], 2));
  ASSERT_TRUE(AwaitFurtherSteps(*running[2]));
  EXPECT_EQ(running[2]->Stop().code(), StatusCode::kCancelled);
  ASSERT_TRUE(AwaitOthers(*running[0], 1));
  ASSERT_TRUE(AwaitFurtherSteps(*running[1]));
  running[2] = Start(config, 2, 4);
  running[3] = Start(config, 3, 4);
  ASSERT_TRUE(AwaitOthers(*running[1], 3));
  ASSERT_TRUE(AwaitFurtherSteps(*running[3]));
  EXPECT_LT(running[3]->Progress().step, kSteps) << "the last task has joined too late";
  for (const auto& task : running) {
    ASSERT_TRUE(task->AwaitEnd());
    EXPECT_EQ(task->End(), OkStatus());
    EXPECT_EQ(task->Progress().step, kSteps);
  }
  const auto alone = Start(Elastic("alone", 1, kSteps), 0, 1);
  ASSERT_TRUE(alone->AwaitEnd());
  const std::vector<float> values = Variables("resized"), expected = Variables("alone");
  ASSERT_EQ(values.size(), 3u);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
}

// A task's TF_CONFIG lists no other task. The group starts with the least number of tasks, although
// it does not know how many there are.
TEST_F(ElasticTest, TasksThatKnowOnlyTheirOwnAddressesTakeTheStepsOfOne) {
  const config::TrainingConfig config = Elastic("sparse", 1, kSteps);
  const Duration started = RealClock().Monotonic();
  std::vector<std::unique_ptr<RunningTask>> running(3);
  running[0] = StartSparse(config, 0);
  ASSERT_TRUE(running[0]->AwaitStep(100));
  EXPECT_LT(RealClock().Monotonic() - started, 25s) << "it has waited for others";
  running[1] = StartSparse(config, 1);
  ASSERT_TRUE(AwaitOthers(*running[0], 1));
  running[2] = StartSparse(config, 2);
  ASSERT_TRUE(AwaitOthers(*running[0], 2));
  ASSERT_TRUE(AwaitFurtherSteps(*running[2]));
  for (const size_t leaves : {2, 1}) {
    EXPECT_EQ(running[leaves]->Stop().code(), StatusCode::kCancelled);
    ASSERT_TRUE(AwaitOthers(*running[0], leaves - 1));
    ASSERT_TRUE(AwaitFurtherSteps(*running[0]));
  }
  EXPECT_LT(running[0]->Progress().step, kSteps) << "the tasks have left too late";
  ASSERT_TRUE(running[0]->AwaitEnd());
  EXPECT_EQ(running[0]->End(), OkStatus());
  const auto alone = Start(Elastic("sparse_alone", 1, kSteps), 0, 1);
  ASSERT_TRUE(alone->AwaitEnd());
  const std::vector<float> values = Variables("sparse"), expected = Variables("sparse_alone");
  ASSERT_EQ(values.size(), 3u);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
}

// A worker that starts while the chief is away finds the worker that leads.
TEST_F(ElasticTest, ATaskThatKnowsOnlyItsOwnAddressFindsALeaderOtherThanTheFirstTask) {
  const config::TrainingConfig config = Elastic("sparse_leader", 1, 100'000'000);
  const auto chief = StartSparse(config, 0), first = StartSparse(config, 1),
             second = StartSparse(config, 2);
  ASSERT_TRUE(AwaitOthers(*chief, 2));
  ASSERT_TRUE(AwaitFurtherSteps(*second));
  EXPECT_EQ(chief->Stop().code(), StatusCode::kCancelled);
  ASSERT_TRUE(AwaitOthers(*first, 1));
  ASSERT_TRUE(AwaitFurtherSteps(*first));
  const auto newcomer = StartSparse(config, 3);
  ASSERT_TRUE(AwaitOthers(*first, 2));
  EXPECT_TRUE(AwaitFurtherSteps(*newcomer));
}

// The number of tasks is fixed, but TF_CONFIG does not list them.
TEST_F(ElasticTest, AFixedNumberOfTasksThatKnowOnlyTheirOwnAddressesTrainTogether) {
  config::TrainingConfig config = Elastic("sparse_fixed", 2, 1000);
  config.strategy.max_replicas = 2;
  config.strategy.on_failure = config::OnFailure::kWait;
  const auto chief = StartSparse(config, 0);
  EXPECT_TRUE(chief->Await([this](const progress::Progress& p) {
    return p.waiting_for.find(StrCat("worker 0 (127.0.0.1:", first_port_ + 1, ")")) !=
           std::string::npos;
  })) << chief->Progress().waiting_for;
  const auto worker = StartSparse(config, 1);
  for (RunningTask* task : {chief.get(), worker.get()}) {
    ASSERT_TRUE(task->AwaitEnd());
    EXPECT_EQ(task->End(), OkStatus());
  }
  EXPECT_EQ(worker->Progress().step, 1000);
  cluster::TfConfig third = *cluster::ParseTfConfig(
      R"({"cluster":{"worker":{"1":"j-worker-1:1"}},"task":{"type":"worker","index":1}})");
  third.chief_type = "chief";
  EXPECT_EQ(Message(WithGroupTasks(config.strategy, third).status()),
            "strategy.max_replicas: expected a group to which /job:worker/task:1 belongs, got 2 "
            "tasks, of which /job:chief/task:0 is the first; scale the job down, or increase "
            "min_replicas and max_replicas in all tasks");
}

TEST_F(ElasticTest, BelowTheMinimumTheGroupWaitsUntilAnotherTaskJoins) {
  const config::TrainingConfig config = Elastic("waits", 2, 100'000'000);
  const auto chief = Start(config, 0, 2);
  auto worker = Start(config, 1, 2);
  ASSERT_TRUE(chief->AwaitStep(100));
  EXPECT_EQ(worker->Stop().code(), StatusCode::kCancelled);
  EXPECT_TRUE(chief->Await([](const progress::Progress& p) {
    return p.waiting_for.find("1 more task (strategy.min_replicas is 2)") != std::string::npos;
  })) << chief->Progress().waiting_for;
  const int64_t waits = chief->Progress().step;
  worker = Start(config, 2, 3);
  EXPECT_TRUE(chief->AwaitStep(waits + 100));
}

// A newcomer leads while the chief is away. When the chief returns, its TF_CONFIG lists neither of
// the other tasks, so the newcomer has to connect to the chief.
TEST_F(ElasticTest, AChiefThatKnowsNobodyFindsTheGroupThatTrainsWithoutIt) {
  const config::TrainingConfig config = Elastic("taken_over", 1, 100'000'000);
  auto chief = Start(config, 0, 1);
  ASSERT_TRUE(chief->AwaitStep(100));
  const auto first = Start(config, 1, 3), second = Start(config, 2, 3);
  ASSERT_TRUE(AwaitOthers(*chief, 2));
  ASSERT_TRUE(AwaitFurtherSteps(*second));
  EXPECT_EQ(chief->Stop().code(), StatusCode::kCancelled);
  ASSERT_TRUE(AwaitFurtherSteps(*second));
  const int64_t without = first->Progress().step;
  chief = Start(config, 0, 1);
  EXPECT_TRUE(chief->AwaitStep(without));
  EXPECT_TRUE(AwaitOthers(*chief, 2));
  EXPECT_TRUE(AwaitFurtherSteps(*second));
}

// The job is scaled up too far. The surplus worker waits until it is asked to stop. The other tasks
// can be restarted, although their new TF_CONFIG lists the surplus worker.
TEST_F(ElasticTest, ATaskBeyondTheMaximumWaitsWhileTheOthersTrain) {
  config::TrainingConfig config = Elastic("surplus", 1, 100'000'000);
  config.strategy.max_replicas = 2;
  const auto chief = Start(config, 0, 3), surplus = Start(config, 2, 3);
  auto worker = Start(config, 1, 3);
  EXPECT_TRUE(surplus->Await([](const progress::Progress& p) {
    return p.waiting_for.find("worker 1 is beyond strategy.max_replicas (2)") != std::string::npos;
  })) << surplus->Progress().waiting_for;
  ASSERT_TRUE(AwaitOthers(*chief, 1));
  ASSERT_TRUE(AwaitFurtherSteps(*worker));
  EXPECT_EQ(worker->Stop().code(), StatusCode::kCancelled);
  worker = Start(config, 1, 3);
  EXPECT_TRUE(AwaitFurtherSteps(*worker));
  EXPECT_EQ(surplus->Stop().code(), StatusCode::kCancelled);
}

TEST_F(ElasticTest, ATaskBeyondTheMaximumEndsWithoutAnErrorWhenTheRunIsOver) {
  config::TrainingConfig config = Elastic("surplus_end", 1, 100);
  config.strategy.max_replicas = 2;
  const auto surplus = Start(config, 2, 3), chief = Start(config, 0, 1);
  ASSERT_TRUE(chief->AwaitEnd());
  EXPECT_EQ(chief->End(), OkStatus());
  ASSERT_TRUE(surplus->AwaitEnd());
  EXPECT_EQ(surplus->End(), OkStatus());
}

TEST_F(ElasticTest, AWorkerThatCannotFindTheLeaderNamesALikelyCause) {
  const auto worker = Start(Elastic("alone_cause", 1, 100), 1, 2);
  EXPECT_TRUE(worker->Await([](const progress::Progress& p) {
    return p.waiting_for.find("started while the job had a single replica") != std::string::npos;
  })) << worker->Progress().waiting_for;
}

// If a worker looked for the claim before the chief has written it, NFS might report for a long
// time that the claim does not exist.
TEST_F(ElasticTest, AWorkerDoesNotLookForTheClaimBeforeItHasJoined) {
  const std::string model_dir = folder_ + "/late_claim";
  ASSERT_TRUE(MakeDirectories(model_dir).ok());
  ASSERT_TRUE(WriteFileAtomically(model_dir + "/group.json", "{}").ok());
  const wire::UniqueFd opened(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(inotify_add_watch(opened.get(), (model_dir + "/group.json").c_str(), IN_OPEN), 0);
  const auto worker = Start(Elastic("late_claim", 1, 100), 1, 2);
  ASSERT_TRUE(worker->Await(
      [](const progress::Progress& p) { return p.state == progress::State::kWaiting; }));
  char event[1024];
  EXPECT_EQ(read(opened.get(), event, sizeof(event)), -1) << "the worker has opened group.json";
}

// The claim that a group has trained was not written, for example because the disk was full.
TEST_F(ElasticTest, AfterARestartWithoutAClaimTheChiefWaitsForACall) {
  const config::TrainingConfig config = Elastic("no_claim", 1, 100'000'000);
  auto chief = Start(config, 0, 1);
  ASSERT_TRUE(chief->AwaitStep(100));
  EXPECT_EQ(chief->Stop().code(), StatusCode::kCancelled);
  ASSERT_TRUE(std::filesystem::remove(folder_ + "/no_claim/group.json"));
  chief = Start(config, 0, 1);
  EXPECT_TRUE(chief->Await([](const progress::Progress& p) {
    return p.waiting_for.find("may have continued without this one") != std::string::npos;
  })) << chief->Progress().waiting_for;
}

TEST_F(ElasticTest, RefusesANewcomerWithOtherLimits) {
  const config::TrainingConfig config = Elastic("limits", 1, 100'000'000);
  const auto chief = Start(config, 0, 1);
  ASSERT_TRUE(chief->AwaitStep(100));
  config::TrainingConfig other = config;
  other.strategy.max_replicas = 5;
  const auto worker = Start(other, 1, 2);
  ASSERT_TRUE(worker->AwaitEnd());
  const Status refused = worker->End();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
  EXPECT_NE(Message(refused).find("'replicas: 1 to 4'"), std::string::npos) << refused;
  EXPECT_TRUE(AwaitFurtherSteps(*chief));
}

// Equal values of min_replicas and max_replicas fix the number of tasks. The cluster must have this
// number of tasks.
TEST_F(ElasticTest, AFixedNumberMustBeThatOfTheCluster) {
  config::TrainingConfig config = Elastic("fixed", 3, 100);
  config.strategy.max_replicas = 3;
  const auto chief = Start(config, 0, 2);
  ASSERT_TRUE(chief->AwaitEnd());
  EXPECT_EQ(chief->End(),
            InvalidArgument("strategy.min_replicas: expected at most the number of tasks that "
                            "train according to TF_CONFIG, 2, got 3; the chief counts as one of "
                            "these tasks"));
}

}  // namespace
}  // namespace tfjob::train
