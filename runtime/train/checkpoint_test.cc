#include "runtime/train/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
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

TEST_F(TrainCheckpointTest, ReadsIntoGivenMemory) {
  ASSERT_TRUE(SaveCheckpoint(folder_, training_, SnapshotAt(12, training_), 5, Time(1s)).ok());
  const state::Snapshot into = SnapshotAt(0, training_);
  const auto loaded = LoadLatestCheckpoint(folder_, training_, {.into = &into});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->variables[0].value.bytes().data(), into.variables[0].value.bytes().data());
  EXPECT_EQ(into.variables[0].value.data<float>()[0], 12);
  EXPECT_EQ((*loaded)->variables[1].slots[1].bytes().data(),
            into.variables[1].slots[1].bytes().data());
}

TEST_F(TrainCheckpointTest, SlotsThatItLacksAreNotThoseOfTheGivenMemory) {
  state::TrainingState sgd = training_;
  sgd.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kSgd);
  state::Snapshot saved = SnapshotAt(3, training_);
  for (state::VariableState& state : saved.variables) state.slots.clear();
  ASSERT_TRUE(SaveCheckpoint(folder_, sgd, saved, 5, Time(1s)).ok());
  const state::Snapshot into = SnapshotAt(0, training_);
  const auto loaded = LoadLatestCheckpoint(folder_, training_, {.into = &into});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->variables[0].slots[1].data<float>()[0], 0);
}

TEST_F(TrainCheckpointTest, MemoryOfADamagedCheckpointTakesAnOlderOne) {
  for (int64_t step : {3, 4}) {
    ASSERT_TRUE(SaveCheckpoint(folder_, training_, SnapshotAt(step, training_), 5, Time(1s)).ok());
  }
  const std::string data = io::DataFileName(io::CheckpointPrefix(folder_, 4), 0, 1);
  std::string bytes = *ReadFile(data);
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(data, bytes).ok());
  const state::Snapshot into = SnapshotAt(0, training_);
  const auto loaded = LoadLatestCheckpoint(folder_, training_, {.into = &into});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->global_step, 3);
  EXPECT_EQ(into.variables[0].value.data<float>()[0], 3);
  state::Snapshot other = into;
  other.variables.pop_back();
  EXPECT_EQ(Message(LoadLatestCheckpoint(folder_, training_, {.into = &other}).status()),
            "the state has 1 variables, the job 2");
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

TEST_F(TrainCheckpointTest, FallsBackToTheNewestWholeOneIfADataFileIsMissing) {
  for (int64_t step : {3, 4}) {
    ASSERT_TRUE(SaveCheckpoint(folder_, training_, SnapshotAt(step, training_), 5, Time(1s)).ok());
  }
  unlink(io::DataFileName(io::CheckpointPrefix(folder_, 4), 0, 1).c_str());
  EXPECT_EQ(CheckLatestCheckpoint(folder_, training_), OkStatus());
  StatusOr<std::optional<state::Snapshot>> loaded = LoadLatestCheckpoint(folder_, training_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->global_step, 3);
}

// RMSProp_1 is the average gradient if RMSprop is centered, otherwise the momentum.
TEST_F(TrainCheckpointTest, ASlotIsReadByItsMeaning) {
  state::TrainingState plain = training_;
  plain.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kRmsprop);
  plain.optimizer.momentum = 0.9;
  state::Snapshot saved = SnapshotAt(3, plain);  // slots: velocity, momentum = 0.5
  ASSERT_TRUE(SaveCheckpoint(folder_, plain, saved, 5, Time(1s)).ok());
  state::TrainingState centered = plain;
  centered.optimizer.centered = true;  // slots: velocity, average gradient, momentum
  StatusOr<state::Snapshot> loaded = LoadCheckpoint(io::CheckpointPrefix(folder_, 3), centered);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->variables[0].slots.size(), 3u);
  EXPECT_EQ(loaded->variables[0].slots[1].data<float>()[0], 0) << "that was the momentum";
  EXPECT_EQ(loaded->variables[0].slots[2].data<float>()[0], 0.5f);
}

// The ledger is one byte longer than the limit. The data file is as long as the index requires, so
// only the limit can reject the ledger.
TEST_F(TrainCheckpointTest, ALedgerThatIsTooLongIsRefused) {
  ASSERT_TRUE(SaveCheckpoint(folder_, training_, SnapshotAt(3, training_), 5, Time(1s)).ok());
  const std::string prefix = io::CheckpointPrefix(folder_, 4);
  auto writer = io::BundleWriter::Create(prefix);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const Tensor ledger(DType::kUInt8, Shape({(256 << 20) + 1}));
  ASSERT_TRUE((*writer)->Add("tfjob/ledger", ledger).ok());
  ASSERT_TRUE((*writer)->Add("global_step", Tensor::Scalar<int64_t>(4)).ok());
  const state::Snapshot snapshot = SnapshotAt(4, training_);
  for (size_t i = 0; i < training_.variables.size(); ++i) {
    ASSERT_TRUE((*writer)->Add(training_.variables[i].name, snapshot.variables[i].value).ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  const Status status = LoadCheckpoint(prefix, training_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find("tfjob/ledger has 268435457 bytes"), std::string::npos) << status;
}

TEST_F(TrainCheckpointTest, FinishedMarkComesAndGoesAndIsOneRuns) {
  const RunMark run{.job_uid = "u", .attempt = 1};
  ASSERT_TRUE(MakeDirectories(folder_).ok());
  EXPECT_EQ(*FinishedStep(folder_, run), std::nullopt);
  ASSERT_TRUE(MarkFinished(folder_, run, 42, Time(1000s)).ok());
  EXPECT_EQ(*FinishedStep(folder_, run), 42);
  EXPECT_NE(RunFingerprint(run), RunFingerprint({.job_uid = "u", .attempt = 2}));
  EXPECT_NE(RunFingerprint(run), RunFingerprint({.job_uid = "v", .attempt = 1}));
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
