// Runs individual roles on a disk that is full or damaged, or that does not show all files. The
// chief keeps training, the evaluator skips checkpoints that it cannot read, and tasks learn that
// the run has ended even if there is no marker.
#include <grpcpp/impl/service_type.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/thread_pool.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/progress/service.h"
#include "runtime/rpc/server.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "runtime/train/model_dir/run_mark.h"
#include "runtime/train/task.h"
#include "runtime/train/test_job.h"
#include "tests/faults/faulty_files.h"

namespace tfjob::train {
namespace {

class DiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  config::TrainingConfig Config(const std::string& more) const {
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 0.1}
data:
  train: {format: linear, weights: [2.0], examples: 64}
  eval: {format: linear, weights: [2.0], examples: 16}
batch_size: 8
threads: 1
log_step_count_steps: 0
model_dir: )",
                                    folder_, "/model\n", more);
    StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "training.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }
  // The cluster has a chief, an evaluator, a worker and a ps; only the chief's address is used.
  TaskOptions Options(const cluster::Task& task, const std::string& more = "") {
    TaskOptions options{.config = Config(more), .job = {"uid", 0}, .files = &disk_};
    options.tf_config.task = task;
    for (const std::string type : {"chief", "evaluator", "worker", "ps"}) {
      std::string address = type == task.type ? "127.0.0.1:0" : "127.0.0.1:9";
      if (type == "chief" && chief_ != nullptr) address = chief_address_;
      options.tf_config.cluster.jobs.push_back({.name = type, .addresses = {{0, address}}});
    }
    return options;
  }
  // Serves the progress of a chief whose run has ended at `step`.
  void AnnounceEnd(int64_t step) {
    service_ = progress::MakeProgressService([step] {
      return progress::Progress{
          .task = "/job:chief/task:0",
          .run_end = progress::RunEnd{.step = step, .run = RunFingerprint({"uid", 0})}};
    });
    chief_ = *rpc::Server::Start({.host = "127.0.0.1", .services = {service_.get()}});
    chief_address_ = StrCat("127.0.0.1:", chief_->port());
  }
  Status SaveAt(int64_t step) {
    const config::TrainingConfig config = Config("max_steps: 1\n");
    const auto definition =
        DefineModel(config, Split::kTrain, **LoadDataset(config, Split::kTrain), 1);
    RETURN_IF_ERROR(definition.status());
    state::Snapshot snapshot = strategy::InitialState(*definition);
    snapshot.global_step = step;
    return SaveCheckpoint(folder_ + "/model", definition->state, snapshot, 10, RealClock().Now());
  }
  Status Damage(int64_t step) {
    const std::string prefix = io::CheckpointPrefix(folder_ + "/model", step);
    return WriteFileAtomically(io::DataFileName(prefix, 0, 1), "damaged");
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/disk_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  faults::FaultyFiles disk_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<rpc::Server> chief_;
  std::string chief_address_;
};

TaskOptions Alone(TaskOptions options) {
  options.tf_config = {};
  return options;
}

TEST_F(DiskTest, OnAFullDiskAllStepsAreMadeAndTheLastOneIsNamed) {
  disk_.Fill(true);
  RunningTask chief(Alone(Options({"worker", 0},
                                  "max_steps: 2000\nsave_checkpoints_steps: 100\n"
                                  "save_summary_steps: 10\nfinal_save_secs: 2\n")));
  const Status status = chief.End();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(Message(status).starts_with("the checkpoint of step 2000 was not saved: ")) << status;
  EXPECT_NE(Message(status).find("No space left on device"), std::string::npos) << status;
  const progress::Progress progress = chief.Progress();
  EXPECT_EQ(progress.step, 2000);
  EXPECT_EQ(progress.problems.count("checkpoints"), 1u);
  EXPECT_EQ(progress.problems.count("summaries"), 1u);
  EXPECT_EQ(*FinishedStep(folder_ + "/model", {"uid", 0}), std::nullopt);
}

TEST_F(DiskTest, AStartingChiefRemovesWhatInterruptedWritesHaveLeft) {
  ASSERT_TRUE(MakeDirectories(folder_ + "/model").ok());
  const std::string left = folder_ + "/model/model.ckpt-8.data-00000-of-00001.tmp.1";
  const std::string foreign = folder_ + "/model/notes.tmp.txt";
  for (const std::string& file : {left, foreign})
    ASSERT_TRUE(WriteFileAtomically(file, "half of it").ok());
  RunningTask chief(Alone(Options({"worker", 0}, "max_steps: 3\n")));
  EXPECT_EQ(chief.End(), OkStatus());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST_F(DiskTest, ADiskThatHangsDuringTrainingDoesNotStopIt) {
  TaskOptions options = Alone(Options({"worker", 0},
                                      "max_steps: 100000000\nsave_checkpoints_steps: 100\n"
                                      "save_summary_steps: 10\n"));
  RunningTask chief(std::move(options));
  ASSERT_TRUE(chief.Await([](const progress::Progress& p) { return p.step > 0; }));
  disk_.Hang(true);
  ASSERT_TRUE(disk_.AwaitHangingWrite());
  const int64_t step = chief.Progress().step;
  EXPECT_TRUE(chief.Await([&](const progress::Progress& p) { return p.step > step + 500; }));
  disk_.Hang(false);
}

// The chief refills a server that has lost its state, whether or not the last save succeeded.
TEST_F(DiskTest, AServerIsRefilledAfterASaveHasFailed) {
  const std::vector<cluster::Task> all = {{"chief", 0}, {"ps", 0}};
  TestCluster job;
  for (const cluster::Task& task : all) job.AddressOf(task);
  Mortal server(0, job.AddressOf({"ps", 0}));
  server.Start(1);
  TaskOptions options =
      Options({"chief", 0}, "max_steps: 100000000\nsave_checkpoints_steps: 100\n");
  options.tf_config = job.Static({"chief", 0}, all);
  RunningTask chief(std::move(options));
  const auto saved = [&] {
    const auto latest = io::LatestCheckpoint(folder_ + "/model");
    return latest.ok() && *latest ? (*latest)->step : 0;
  };
  ASSERT_TRUE(chief.Await([&](const progress::Progress&) { return saved() > 0; }));
  disk_.Fill(true);
  ASSERT_TRUE(
      chief.Await([](const progress::Progress& p) { return p.problems.contains("checkpoints"); }));
  const int64_t last = saved();
  const int64_t lost = chief.Progress().step;
  testing::internal::CaptureStderr();
  server.Kill();
  server.Start(2);
  EXPECT_TRUE(chief.AwaitStep(lost + 500)) << "the new server is empty until it is refilled";
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(saved(), last);
  const std::string says = StrCat(" go back to a saved state step=", last, " steps_lost=");
  const size_t said = log.find(says);
  ASSERT_NE(said, std::string::npos) << log;
  EXPECT_GE(std::stoll(log.substr(said + says.size())), lost - last);
  disk_.Fill(false);
  EXPECT_TRUE(absl::IsCancelled(chief.Stop()));
}

TEST_F(DiskTest, TheEvaluatorPassesOverADamagedCheckpoint) {
  for (int64_t step : {1, 2, 3}) ASSERT_EQ(SaveAt(step), OkStatus());
  ASSERT_EQ(Damage(2), OkStatus());
  RunningTask evaluator(Options({"evaluator", 0}, "max_steps: 3\n"));
  ASSERT_TRUE(evaluator.Await([](const progress::Progress& p) { return p.step == 3; }));
  ASSERT_EQ(MarkFinished(folder_ + "/model", {"uid", 0}, 3, RealClock().Now()), OkStatus());
  EXPECT_EQ(evaluator.End(), OkStatus());
  EXPECT_EQ(*FinishedStep(folder_ + "/model/eval", {"uid", 0}), 3);
}

TEST_F(DiskTest, TheEvaluatorPassesOverADamagedListOfCheckpoints) {
  ASSERT_EQ(SaveAt(1), OkStatus());
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/model/checkpoint", "{").ok());
  RunningTask evaluator(Options({"evaluator", 0}, "max_steps: 3\n"));
  ASSERT_TRUE(evaluator.Await([](const progress::Progress& p) { return !p.problems.empty(); }));
  std::filesystem::remove(folder_ + "/model/checkpoint");
  ASSERT_EQ(SaveAt(3), OkStatus());
  ASSERT_EQ(MarkFinished(folder_ + "/model", {"uid", 0}, 3, RealClock().Now()), OkStatus());
  EXPECT_EQ(evaluator.End(), OkStatus());
  EXPECT_EQ(evaluator.Progress().step, 3);
}

TEST_F(DiskTest, TheEvaluatorFailsIfTheLastCheckpointIsDamaged) {
  for (int64_t step : {1, 2}) ASSERT_EQ(SaveAt(step), OkStatus());
  ASSERT_EQ(Damage(2), OkStatus());
  RunningTask evaluator(Options({"evaluator", 0}, "max_steps: 3\n"));
  // At this time, the evaluator does not know that the damaged checkpoint is the last one.
  ASSERT_TRUE(evaluator.Await([](const progress::Progress& p) { return !p.problems.empty(); }));
  ASSERT_EQ(MarkFinished(folder_ + "/model", {"uid", 0}, 2, RealClock().Now()), OkStatus());
  const Status status = evaluator.End();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find("model.ckpt-2"), std::string::npos) << status;
}

TEST_F(DiskTest, TheEvaluatorLearnsTheEndFromTheChief) {
  ASSERT_EQ(SaveAt(3), OkStatus());
  AnnounceEnd(3);
  RunningTask evaluator(Options({"evaluator", 0}, "max_steps: 3\n"));
  EXPECT_EQ(evaluator.End(), OkStatus());
  EXPECT_EQ(evaluator.Progress().step, 3);
  ASSERT_TRUE(evaluator.Progress().run_end.has_value());
  EXPECT_EQ(evaluator.Progress().run_end->step, 3);
}

TEST_F(DiskTest, AWorkerWithoutTheFolderLearnsTheEndFromTheChief) {
  AnnounceEnd(3);
  TaskOptions options = Options({"worker", 0}, "max_steps: 3\n");
  options.config.model_dir = "";
  RunningTask worker(std::move(options));
  EXPECT_EQ(worker.End(), OkStatus());
}

}  // namespace
}  // namespace tfjob::train
