#include "runtime/train/checkpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/train/checkpoint_saver.h"
#include "runtime/train/run_mark.h"

namespace tfjob::train {
namespace {

state::TrainingState AdamState() {
  return {.variables = {{"dense/kernel", DType::kFloat32, Shape({2, 1})},
                        {"dense/bias", DType::kFloat32, Shape({1})}},
          .optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam)};
}

state::Snapshot SnapshotAt(int64_t step, const state::TrainingState& training) {
  state::Snapshot snapshot{.global_step = step, .ledger = std::string("who\0what", 8)};
  for (const state::Variable& variable : training.variables) {
    Tensor value(variable.dtype, variable.shape);
    value.data<float>()[0] = static_cast<float>(step);
    snapshot.variables.push_back(
        state::VariableState::Initial(variable, training.optimizer, std::move(value)));
    snapshot.variables.back().slots[1].data<float>()[0] = 0.5f;
  }
  return snapshot;
}

class TrainCheckpointTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = testing::TempDir() + "/train_checkpoint_test";
  const state::TrainingState training_ = AdamState();
};

TEST_F(TrainCheckpointTest, ReadsBackVariablesSlotsStepAndLedger) {
  const state::Snapshot saved = SnapshotAt(12, training_);
  ASSERT_TRUE(SaveCheckpoint(folder_, training_, saved, 5, Time(1s)).ok());
  StatusOr<std::optional<state::Snapshot>> loaded = LoadLatestCheckpoint(folder_, training_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ((*loaded)->global_step, 12);
  EXPECT_EQ((*loaded)->ledger, saved.ledger);
  EXPECT_EQ((*loaded)->variables[0].value.data<float>()[0], 12);
  EXPECT_EQ((*loaded)->variables[0].slots[1].data<float>()[0], 0.5f);
  EXPECT_TRUE(
      (*io::BundleReader::Open(io::CheckpointPrefix(folder_, 12)))->Has("dense/kernel/Adam_1"));
}

TEST_F(TrainCheckpointTest, FillsSlotsThatTheCheckpointLacks) {
  state::TrainingState sgd = training_;
  sgd.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kSgd);
  state::Snapshot saved = SnapshotAt(3, training_);
  for (state::VariableState& state : saved.variables) state.slots.clear();
  ASSERT_TRUE(SaveCheckpoint(folder_, sgd, saved, 5, Time(1s)).ok());
  StatusOr<state::Snapshot> loaded = LoadCheckpoint(io::CheckpointPrefix(folder_, 3), training_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->variables[0].slots.size(), 2u);
}

TEST_F(TrainCheckpointTest, NamesAVariableOfAnotherShapeOrNone) {
  ASSERT_TRUE(SaveCheckpoint(folder_, training_, SnapshotAt(3, training_), 5, Time(1s)).ok());
  state::TrainingState wider = training_;
  wider.variables[0].shape = Shape({3, 1});
  const std::string prefix = io::CheckpointPrefix(folder_, 3);
  EXPECT_NE(Message(LoadCheckpoint(prefix, wider).status())
                .find("dense/kernel is float32[2,1], but the model has float32[3,1]"),
            std::string::npos);
  wider.variables[0].name = "dense_1/kernel";
  EXPECT_TRUE(absl::IsNotFound(LoadCheckpoint(prefix, wider).status()));
}

TEST_F(TrainCheckpointTest, TheCheckFindsWhatReadingWouldFind) {
  EXPECT_EQ(CheckLatestCheckpoint(folder_, training_), OkStatus());
  for (int64_t step : {3, 4}) {
    ASSERT_TRUE(SaveCheckpoint(folder_, training_, SnapshotAt(step, training_), 5, Time(1s)).ok());
  }
  EXPECT_EQ(CheckLatestCheckpoint(folder_, training_), OkStatus());
  state::TrainingState other = training_;
  other.variables[0].shape = Shape({3, 1});
  EXPECT_EQ(CheckLatestCheckpoint(folder_, other), LoadLatestCheckpoint(folder_, other).status());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckLatestCheckpoint(folder_, other)));
  other.variables[0].name = "dense_1/kernel";
  EXPECT_TRUE(absl::IsNotFound(CheckLatestCheckpoint(folder_, other)));
  // If the newest checkpoint is damaged but an older one is intact, there is no error.
  const std::string index = io::CheckpointPrefix(folder_, 4) + ".index";
  ASSERT_TRUE(WriteFileAtomically(index, "no index").ok());
  EXPECT_EQ(CheckLatestCheckpoint(folder_, training_), OkStatus());
}

// A clock that advances ten seconds each time it is read.
class HastyClock : public Clock {
 public:
  Time Now() override { return Time(1000s); }
  Duration Monotonic() override { return Duration(10s) * ++looks_; }
  int looks() const { return looks_; }

 private:
  std::atomic<int> looks_ = 0;
};

TEST_F(TrainCheckpointTest, SaverSaysEveryTenSecondsThatItWaitsForTheDisk) {
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  // Simulates a disk that hangs: the read blocks until the pipe is opened for writing.
  const std::string pipe = folder_ + "/checkpoint";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  HastyClock clock;
  CheckpointSaver saver(folder_, training_, {}, clock);
  testing::internal::CaptureStderr();
  ASSERT_TRUE(saver.Save(SnapshotAt(5, training_)).ok());
  const int looks = clock.looks();
  std::thread disk([&] {
    // The wait begins with the first reading of the clock, 10 s have passed at the second, and the
    // report is written before the third.
    while (clock.looks() < looks + 3) std::this_thread::sleep_for(1ms);
    close(open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
  });
  const Status flushed = saver.Flush();
  disk.join();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(flushed, OkStatus());
  EXPECT_NE(log.find("waiting for the disk"), std::string::npos) << log;
  EXPECT_NE(log.find(io::CheckpointPrefix(folder_, 5)), std::string::npos) << log;
  EXPECT_EQ((*io::LatestCheckpoint(folder_))->step, 5);
}

TEST_F(TrainCheckpointTest, SaverWritesInTheBackgroundWhenDue) {
  FakeClock clock(Time(1000s));
  CheckpointSaver saver(folder_, training_, {.every_secs = 600, .keep = 2}, clock);
  EXPECT_FALSE(saver.Due(5));
  clock.Advance(600s);
  EXPECT_TRUE(saver.Due(5));
  for (int64_t step : {5, 6, 7}) ASSERT_TRUE(saver.Save(SnapshotAt(step, training_)).ok());
  ASSERT_TRUE(saver.Flush().ok());
  EXPECT_FALSE(saver.Due(8));
  EXPECT_EQ(io::ListCheckpoints(folder_)->size(), 2u);
  EXPECT_EQ((*io::LatestCheckpoint(folder_))->step, 7);
}

TEST_F(TrainCheckpointTest, SaverCountsStepsWhenToldTo) {
  FakeClock clock(Time(1000s));
  CheckpointSaver saver(folder_, training_, {.every_secs = 600, .every_steps = 10}, clock);
  saver.Skip(100);
  EXPECT_FALSE(saver.Due(109));
  EXPECT_TRUE(saver.Due(110));
}

TEST_F(TrainCheckpointTest, SaverReportsAWriteThatFailed) {
  FakeClock clock(Time(1000s));
  CheckpointSaver saver("/proc/nowhere", training_, {}, clock);
  ASSERT_TRUE(saver.Save(SnapshotAt(1, training_)).ok());
  EXPECT_NE(Message(saver.Flush()).find("/proc/nowhere"), std::string::npos);
}

TEST_F(TrainCheckpointTest, FinishedMarkComesAndGoesAndIsOneRuns) {
  const RunMark run{.job_uid = "u", .attempt = 1};
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  EXPECT_EQ(*FinishedStep(folder_, run), std::nullopt);
  ASSERT_TRUE(MarkFinished(folder_, run, 42, Time(1000s)).ok());
  EXPECT_EQ(*FinishedStep(folder_, run), 42);
  EXPECT_EQ(*FinishedStep(folder_, {.job_uid = "u", .attempt = 2}), std::nullopt);
  ASSERT_TRUE(ClearFinished(folder_).ok());
  ASSERT_TRUE(ClearFinished(folder_).ok());
  EXPECT_EQ(*FinishedStep(folder_, run), std::nullopt);
}

TEST_F(TrainCheckpointTest, WithoutAJobUidAMarkFromBeforeTheRunDoesNotCount) {
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  ASSERT_TRUE(MarkFinished(folder_, {}, 42, Time(1000s)).ok());
  EXPECT_EQ(*FinishedStep(folder_, {.oldest = Time(1001s)}), std::nullopt);
  EXPECT_EQ(*FinishedStep(folder_, {.oldest = Time(999s)}), 42);
  EXPECT_EQ(*FinishedStep(folder_, {}), 42);
  // A matching UID overrides the time.
  ASSERT_TRUE(MarkFinished(folder_, {.job_uid = "u"}, 42, Time(1000s)).ok());
  EXPECT_EQ(*FinishedStep(folder_, {.job_uid = "u", .oldest = Time(1001s)}), 42);
  // An earlier version of the trainer wrote such a mark.
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/finished.json", R"({"global_step":7})").ok());
  EXPECT_EQ(*FinishedStep(folder_, {.oldest = Time(999s)}), std::nullopt);
  EXPECT_EQ(*FinishedStep(folder_, {}), 7);
}

}  // namespace
}  // namespace tfjob::train
