#include "runtime/train/model_dir/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/train/model_dir/run_claim.h"
#include "runtime/train/model_dir/run_mark.h"

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

TEST_F(TrainCheckpointTest, ReadsBackTheScaleOfTheLoss) {
  state::Snapshot saved = SnapshotAt(12, training_);
  ASSERT_TRUE(SaveCheckpoint(folder_, training_, saved, 5, Time(1s)).ok());
  EXPECT_EQ((*LoadLatestCheckpoint(folder_, training_))->loss_scale, std::nullopt);
  saved.loss_scale = {.scale = 4096, .good_steps = 77};
  saved.global_step = 13;
  ASSERT_TRUE(SaveCheckpoint(folder_, training_, saved, 5, Time(1s)).ok());
  const auto loaded = LoadLatestCheckpoint(folder_, training_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->loss_scale, saved.loss_scale);
}

TEST_F(TrainCheckpointTest, RefusesAScaleOfTheLossThatNoRunWrites) {
  state::Snapshot saved = SnapshotAt(12, training_);
  for (const state::LossScale& scale : {state::LossScale{.scale = 0}, state::LossScale{.scale = -4},
                                        state::LossScale{.good_steps = state::kGoodStepsToGrow}}) {
    saved.loss_scale = scale;
    ASSERT_TRUE(SaveCheckpoint(folder_, training_, saved, 5, Time(1s)).ok());
    const Status status = LoadCheckpoint(io::CheckpointPrefix(folder_, 12), training_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find("tfjob/loss_scale"), std::string::npos) << status;
  }
}

TEST_F(TrainCheckpointTest, ReadsBackTheLearningRateThatTheRunHasSet) {
  state::Snapshot saved = SnapshotAt(12, training_);
  ASSERT_TRUE(SaveCheckpoint(folder_, training_, saved, 5, Time(1s)).ok());
  EXPECT_EQ((*LoadLatestCheckpoint(folder_, training_))->learning_rate, std::nullopt);
  saved.learning_rate = {.rate = 0.1 * 0.1, .step = 8};
  saved.global_step = 13;
  ASSERT_TRUE(SaveCheckpoint(folder_, training_, saved, 5, Time(1s)).ok());
  const auto loaded = LoadLatestCheckpoint(folder_, training_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->learning_rate, saved.learning_rate);
  for (const state::LearningRate& rate :
       {state::LearningRate{.rate = -1}, state::LearningRate{.rate = NAN},
        state::LearningRate{.rate = 1, .step = -1}}) {
    saved.learning_rate = rate;
    ASSERT_TRUE(SaveCheckpoint(folder_, training_, saved, 5, Time(1s)).ok());
    const Status status = LoadCheckpoint(io::CheckpointPrefix(folder_, 13), training_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find("tfjob/learning_rate"), std::string::npos) << status;
  }
}

// The right to write may be lost at any time. The previous checkpoint then stays the newest one.
TEST_F(TrainCheckpointTest, OneThatMayNoLongerBeWrittenIsNotRegistered) {
  ASSERT_EQ(SaveCheckpoint(folder_, training_, SnapshotAt(12, training_), 5, Time(1s)), OkStatus());
  for (const int allowed : {0, 1, 2, 3, 4}) {
    int asked = 0;
    const auto may_write = [&] { return asked++ < allowed ? OkStatus() : Unavailable("cut off"); };
    EXPECT_EQ(SaveCheckpoint(folder_, training_, SnapshotAt(13, training_), 5, Time(2s),
                             RealFileSystem(), {.check = may_write}),
              Unavailable("cut off"));
    EXPECT_EQ((*io::LatestCheckpoint(folder_))->step, 12) << allowed;
    EXPECT_EQ(std::filesystem::exists(io::CheckpointPrefix(folder_, 13) + ".index"), allowed == 4);
  }
}

// The files of an existing checkpoint of the same step must not be replaced, either.
TEST_F(TrainCheckpointTest, OneOfAnEarlierTermReplacesNothing) {
  const auto save = [this](int64_t term, float value) {
    state::Snapshot snapshot = SnapshotAt(12, training_);
    snapshot.variables[0].value.data<float>()[0] = value;
    return SaveCheckpoint(folder_, training_, snapshot, 5, Time(1s), RealFileSystem(),
                          {.term = term});
  };
  ASSERT_EQ(save(4, 1), OkStatus());
  EXPECT_EQ(save(3, 2).code(), StatusCode::kFailedPrecondition);
  const auto kept = LoadCheckpoint(io::CheckpointPrefix(folder_, 12), training_);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->variables[0].value.data<float>()[0], 1);
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

// Streams values that take two and a half pieces. Reads of bytes at or after `fails_at` fail.
class Streamed : public state::StreamedValue {
 public:
  static constexpr int64_t kElements = 5 * static_cast<int64_t>(state::kPieceBytes) / 8;
  explicit Streamed(Tensor values, int64_t fails_at = INT64_MAX)
      : values_(std::move(values)), fails_at_(fails_at) {}
  Status Read(int64_t offset, std::span<std::byte> to) const override {
    if (to.size() > state::kPieceBytes) return Internal("too much at once");
    if (offset + static_cast<int64_t>(to.size()) > fails_at_) return Unavailable("ps 1 is lost");
    std::ranges::copy(values_.bytes().subspan(static_cast<size_t>(offset), to.size()), to.begin());
    return OkStatus();
  }

 private:
  const Tensor values_;
  const int64_t fails_at_;
};

class StreamedCheckpointTest : public TrainCheckpointTest {
 protected:
  StreamedCheckpointTest() {
    large_.variables = {{"table", DType::kFloat32, Shape({Streamed::kElements})},
                        {"bias", DType::kFloat32, Shape({1})}};
    large_.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdagrad);
  }
  static Tensor Values(float first) {
    Tensor values(DType::kFloat32, {Streamed::kElements});
    for (size_t i = 0; i < values.data<float>().size(); ++i)
      values.data<float>()[i] = first + static_cast<float>(i % 1'000'003);
    return values;
  }
  state::Snapshot Snapshot(int64_t step, bool streamed, int64_t fails_at = INT64_MAX) const {
    state::Snapshot snapshot{.global_step = step};
    state::VariableState& table = snapshot.variables.emplace_back();
    if (streamed) {
      table.streamed = {std::make_shared<Streamed>(Values(1)),
                        std::make_shared<Streamed>(Values(2), fails_at)};
    } else {
      table.value = Values(1);
      table.slots = {Values(2)};
    }
    snapshot.variables.push_back(state::VariableState::Initial(
        large_.variables[1], large_.optimizer, Tensor::Of<float>({1}, {static_cast<float>(step)})));
    return snapshot;
  }
  Status Save(const state::Snapshot& snapshot) const {
    return SaveCheckpoint(folder_, large_, snapshot, 5, Time(1s));
  }

  const std::vector<int> table_ = {0};
  state::TrainingState large_;
};

TEST_F(StreamedCheckpointTest, IsThatOfTheSameValuesInMemory) {
  ASSERT_EQ(Save(Snapshot(3, true)), OkStatus());
  const std::string prefix = io::CheckpointPrefix(folder_, 3);
  const std::string data = *ReadFile(io::DataFileName(prefix, 0, 1));
  const std::string index = *ReadFile(io::IndexFileName(prefix));
  ASSERT_EQ(Save(Snapshot(3, false)), OkStatus());
  EXPECT_TRUE(data == *ReadFile(io::DataFileName(prefix, 0, 1)));
  EXPECT_EQ(index, *ReadFile(io::IndexFileName(prefix)));
}

TEST_F(StreamedCheckpointTest, StreamsWhatItLoads) {
  ASSERT_EQ(Save(Snapshot(3, true)), OkStatus());
  ASSERT_EQ(CheckLatestCheckpoint(folder_, large_, table_), OkStatus());
  const auto loaded = LoadLatestCheckpoint(folder_, large_, {.streamed = table_});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const state::Snapshot& snapshot = **loaded;
  EXPECT_EQ(state::CheckFits(snapshot, large_), OkStatus());
  EXPECT_EQ(snapshot.variables[1].value.data<float>()[0], 3);
  ASSERT_EQ(snapshot.variables[0].streamed.size(), 2u);
  EXPECT_EQ(snapshot.variables[0].value.num_elements(), 0);
  std::filesystem::remove_all(folder_);  // a later save may delete the checkpoint at any time
  for (size_t part = 0; part < 2; ++part) {
    const StatusOr<Tensor> whole =
        state::ReadWhole(large_.variables[0], *snapshot.variables[0].streamed[part]);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_TRUE(std::ranges::equal(whole->bytes(), Values(part == 0 ? 1.f : 2.f).bytes()));
  }
}

TEST_F(StreamedCheckpointTest, SlotsThatItLacksBegin) {
  state::TrainingState sgd = large_;
  sgd.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kSgd);
  state::Snapshot saved = Snapshot(3, true);
  saved.variables[0].streamed.pop_back();
  saved.variables[1].slots.clear();
  ASSERT_EQ(SaveCheckpoint(folder_, sgd, saved, 5, Time(1s)), OkStatus());
  const auto loaded = LoadLatestCheckpoint(folder_, large_, {.streamed = table_});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  float element = -1;
  ASSERT_EQ((*loaded)->variables[0].streamed.at(1)->Read(
                400, std::as_writable_bytes(std::span(&element, 1))),
            OkStatus());
  EXPECT_EQ(element, static_cast<float>(large_.optimizer.initial_accumulator_value));
}

TEST_F(StreamedCheckpointTest, OneThatCannotBeReadToItsEndLeavesTheOneBefore) {
  ASSERT_EQ(Save(Snapshot(3, true)), OkStatus());
  const std::vector<std::string> before = *ListDirectory(folder_);
  EXPECT_EQ(Save(Snapshot(4, true, /*fails_at=*/2 << 20)),
            Unavailable("table/Adagrad: ps 1 is lost"));
  EXPECT_EQ(*ListDirectory(folder_), before);
  EXPECT_EQ((*LoadLatestCheckpoint(folder_, large_, {.streamed = table_}))->global_step, 3);
}

TEST_F(StreamedCheckpointTest, ADamagedOneIsReplacedByAnOlderOne) {
  ASSERT_EQ(Save(Snapshot(3, true)), OkStatus());
  ASSERT_EQ(Save(Snapshot(4, true)), OkStatus());
  const std::string data = io::DataFileName(io::CheckpointPrefix(folder_, 4), 0, 1);
  std::string bytes = *ReadFile(data);
  bytes[3 << 20] = static_cast<char>(bytes[3 << 20] ^ 1);  // a byte of the slot
  ASSERT_TRUE(WriteFileAtomically(data, bytes).ok());
  EXPECT_EQ((*LoadLatestCheckpoint(folder_, large_, {.streamed = table_}))->global_step, 3);
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

// RMSProp_1 is the average gradient if RMSprop is centered, and otherwise the momentum.
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

TEST_F(TrainCheckpointTest, ALedgerThatCouldNotBeReadBackIsNotWritten) {
  ASSERT_EQ(SaveCheckpoint(folder_, training_, SnapshotAt(3, training_), 5, Time(1s)), OkStatus());
  state::Snapshot snapshot = SnapshotAt(4, training_);
  snapshot.ledger.assign((256 << 20) + 1, 'x');
  const Status status = SaveCheckpoint(folder_, training_, snapshot, 5, Time(2s));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(Message(status),
            "checkpoint of step 4: tfjob/ledger has 268435457 bytes, but at most 268435456 can be "
            "read back; train with fewer tasks, or increase strategy.shard_bytes");
  const auto latest = io::LatestCheckpoint(folder_);
  ASSERT_TRUE(latest.ok() && latest->has_value());
  EXPECT_EQ((*latest)->prefix, io::CheckpointPrefix(folder_, 3));
}

TEST_F(TrainCheckpointTest, AClaimIsInAFileOfItsOwn) {
  const Claim claim{.first_term = 1'764'000'000'000'000, .job_uid = "u", .attempt = 2};
  EXPECT_TRUE(absl::IsNotFound(ReadClaim(folder_).status()));
  ASSERT_EQ(WriteClaim(folder_, {.first_term = 5}), OkStatus());
  ASSERT_EQ(WriteClaim(folder_, claim), OkStatus());
  EXPECT_EQ(ReadClaim(folder_).value(), claim);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/group.json", "{\"first_term\": 5}").ok());
  EXPECT_EQ(ReadClaim(folder_).value(), (Claim{.first_term = 5})) << "of an earlier version";
  for (const char* text : {"", "{}", "{\"first_term\": \"5\"}", "[5",
                           "{\"first_term\": 5, \"job_uid\": 6, \"attempt\": 0}"}) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/group.json", text).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadClaim(folder_).status())) << text;
  }
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
  // If the UID matches, the time is ignored.
  ASSERT_TRUE(MarkFinished(folder_, {.job_uid = "u"}, 42, Time(1000s)).ok());
  EXPECT_EQ(*FinishedStep(folder_, {.job_uid = "u", .oldest = Time(1001s)}), 42);
  // Earlier versions of the trainer wrote markers of this form.
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/finished.json", R"({"global_step":7})").ok());
  EXPECT_EQ(*FinishedStep(folder_, {.oldest = Time(999s)}), std::nullopt);
  EXPECT_EQ(*FinishedStep(folder_, {}), 7);
}

}  // namespace
}  // namespace tfjob::train
