#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/tensor/half.h"
#include "tests/faults/faulty_files.h"
#include "tests/faults/power_loss.h"

namespace tfjob::io {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }

  void Save(int64_t step, FileSystem& files = RealFileSystem()) {
    auto writer = BundleWriter::Create(CheckpointPrefix(folder_, step), files);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Add("dense/kernel", Tensor::Of<float>({2, 2}, {1, 2, 3, 4})).ok());
    ASSERT_TRUE((*writer)->Add("global_step", Tensor::Scalar<int64_t>(step)).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }

  const std::string folder_ = testing::TempDir() + "/checkpoint_test";
};

TEST_F(CheckpointTest, ReadsBackWhatItWrote) {
  Save(7);
  auto reader = BundleReader::Open(CheckpointPrefix(folder_, 7));
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ((*reader)->entries().size(), 2u);
  StatusOr<Tensor> kernel = (*reader)->Read("dense/kernel");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->shape(), Shape({2, 2}));
  EXPECT_EQ(kernel->data<float>()[3], 4);
  EXPECT_EQ((*reader)->Read("global_step")->data<int64_t>()[0], 7);
  EXPECT_TRUE(absl::IsNotFound((*reader)->Read("bias").status()));
}

TEST_F(CheckpointTest, ReadsBackHalfTypes) {
  const std::string prefix = folder_ + "/halves";
  auto writer = *BundleWriter::Create(prefix);
  ASSERT_EQ(writer->Add("b", Tensor::Of<BFloat16>({2}, {BFloat16(1), BFloat16(3e38F)})),
            OkStatus());
  ASSERT_EQ(writer->Add("f", Tensor::Scalar(Float16(-0.5F))), OkStatus());
  ASSERT_EQ(writer->Finish(), OkStatus());
  const auto reader = *BundleReader::Open(prefix);
  EXPECT_EQ(reader->entries().at("b").tensorflow_dtype, 14) << "DT_BFLOAT16";
  EXPECT_EQ(reader->entries().at("f").tensorflow_dtype, 19) << "DT_HALF";
  EXPECT_EQ(reader->Read("b")->data<BFloat16>()[1].bits, BFloat16(3e38F).bits);
  EXPECT_EQ(reader->Read("f")->data<Float16>()[0].bits, Float16(-0.5F).bits);
}

TEST_F(CheckpointTest, PiecesMakeTheSameFilesAsWholeTensors) {
  Tensor large(DType::kFloat32, {300'000});
  for (size_t i = 0; i < 300'000; ++i) large.data<float>()[i] = static_cast<float>(i * i % 1013);
  for (const size_t piece : {size_t{0}, size_t{40}, size_t{300'004}, size_t{2'000'000}}) {
    const std::string prefix = StrCat(folder_, "/pieces-", piece);
    auto writer = *BundleWriter::Create(prefix);
    ASSERT_EQ(writer->Add("before", Tensor::Scalar<int64_t>(5)), OkStatus());
    if (piece == 0) {
      ASSERT_EQ(writer->Add("large", large), OkStatus());
      ASSERT_EQ(writer->Add("none", Tensor(DType::kFloat32, {0, 3})), OkStatus());
    } else {
      ASSERT_EQ(writer->Begin("large", DType::kFloat32, large.shape()), OkStatus());
      for (std::span<const std::byte> left = large.bytes(); !left.empty();) {
        const size_t count = std::min(left.size(), piece);
        ASSERT_EQ(writer->Append(left.first(count)), OkStatus());
        left = left.subspan(count);
      }
      ASSERT_EQ(writer->Begin("none", DType::kFloat32, {0, 3}), OkStatus());
    }
    EXPECT_TRUE(absl::IsAlreadyExists(writer->Begin("large", DType::kFloat32, {1})));
    ASSERT_EQ(writer->Add("after", Tensor::Scalar<int64_t>(6)), OkStatus());
    ASSERT_EQ(writer->Finish(), OkStatus());
    const std::string whole = StrCat(folder_, "/pieces-0");
    EXPECT_EQ(*ReadFile(IndexFileName(prefix)), *ReadFile(IndexFileName(whole)));
    EXPECT_EQ(*ReadFile(DataFileName(prefix, 0, 1)), *ReadFile(DataFileName(whole, 0, 1)));
  }
}

TEST_F(CheckpointTest, ATensorThatIsIncompleteLeavesNothing) {
  {
    auto writer = *BundleWriter::Create(folder_ + "/part");
    ASSERT_EQ(writer->Begin("a", DType::kFloat32, {10}), OkStatus());
    ASSERT_EQ(writer->Append(std::as_bytes(std::span("1234567"))), OkStatus());
  }
  EXPECT_TRUE(ListDirectory(folder_)->empty());
}

// The header must be byte-identical to that in files written by TensorFlow: one shard, producer 1.
TEST_F(CheckpointTest, IndexHoldsTensorFlowsHeaderBytes) {
  Save(7);
  const std::string index = *ReadFile(IndexFileName(CheckpointPrefix(folder_, 7)));
  EXPECT_NE(index.find(std::string("\x08\x01\x1a\x02\x08\x01", 6)), std::string::npos);
  EXPECT_EQ(index.substr(index.size() - 8), std::string("\x57\xfb\x80\x8b\x24\x75\x47\xdb"));
}

TEST_F(CheckpointTest, UnfinishedWriterLeavesNothing) {
  {
    auto writer = BundleWriter::Create(folder_ + "/part");
    ASSERT_TRUE((*writer)->Add("a", Tensor::Scalar<float>(1)).ok());
    EXPECT_TRUE(absl::IsAlreadyExists((*writer)->Add("a", Tensor::Scalar<float>(1))));
  }
  EXPECT_TRUE(ListDirectory(folder_)->empty());
}

TEST_F(CheckpointTest, DamageIsNamed) {
  Save(7);
  const std::string prefix = CheckpointPrefix(folder_, 7);
  const std::string data = DataFileName(prefix, 0, 1);
  std::string bytes = *ReadFile(data);
  bytes[0] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(data, bytes).ok());
  EXPECT_EQ(Message((*BundleReader::Open(prefix))->Read("dense/kernel").status()),
            StrCat("checkpoint ", prefix, ": the checksum of dense/kernel is wrong"));
  ASSERT_TRUE(WriteFileAtomically(data, bytes.substr(0, 3)).ok());
  EXPECT_TRUE(absl::IsDataLoss(BundleReader::Open(prefix).status()));
  std::string index = *ReadFile(IndexFileName(prefix));
  index[10] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(IndexFileName(prefix), index).ok());
  EXPECT_TRUE(absl::IsDataLoss(BundleReader::Open(prefix).status()));
  ASSERT_TRUE(WriteFileAtomically(IndexFileName(prefix), "short").ok());
  EXPECT_TRUE(absl::IsDataLoss(BundleReader::Open(prefix).status()));
}

TEST_F(CheckpointTest, WrongPrefixIsExplained) {
  Save(7);
  const std::string prefix = CheckpointPrefix(folder_, 7);
  EXPECT_NE(
      Message(BundleReader::Open(prefix + ".index").status()).find("use the prefix " + prefix),
      std::string::npos);
  EXPECT_NE(Message(BundleReader::Open(folder_).status()).find("it is a folder"),
            std::string::npos);
}

TEST_F(CheckpointTest, KeepsTheNewestAndDeletesTheRest) {
  for (int64_t step : {1, 2, 3}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 2, Time(1000s)).ok());
  }
  StatusOr<std::vector<Checkpoint>> listed = ListCheckpoints(folder_);
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ(listed->front().step, 2);
  EXPECT_EQ((*LatestCheckpoint(folder_))->prefix, CheckpointPrefix(folder_, 3));
  EXPECT_FALSE(std::filesystem::exists(IndexFileName(CheckpointPrefix(folder_, 1))));
  EXPECT_FALSE(std::filesystem::exists(DataFileName(CheckpointPrefix(folder_, 1), 0, 1)));
  EXPECT_NE(ReadFile(folder_ + "/checkpoint")->find("model_checkpoint_path: \"model.ckpt-3\""),
            std::string::npos);
}

TEST_F(CheckpointTest, RollingBackForgetsLaterSteps) {
  for (int64_t step : {10, 20, 15}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 5, Time(1000s)).ok());
  }
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 15);
  EXPECT_EQ(ListCheckpoints(folder_)->size(), 2u);
}

TEST_F(CheckpointTest, RollingBackDeletesLaterSteps) {
  for (int64_t step : {10, 20, 15}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 5, Time(1000s)).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(IndexFileName(CheckpointPrefix(folder_, 20))));
  EXPECT_FALSE(std::filesystem::exists(DataFileName(CheckpointPrefix(folder_, 20), 0, 1)));
}

// A write that hung for a long time resumes after another process has taken over.
TEST_F(CheckpointTest, RefusesACheckpointOfAnEarlierTerm) {
  const auto save = [this](int64_t term, int64_t step) {
    Save(step);
    return RegisterCheckpoint(folder_, step, 5, Time(1000s), RealFileSystem(), {.term = term});
  };
  EXPECT_EQ(RecordedTerm(folder_).value(), 0);
  ASSERT_EQ(save(3, 10), OkStatus());
  ASSERT_EQ(save(4, 20), OkStatus());
  EXPECT_EQ(RecordedTerm(folder_).value(), 4);
  for (const auto& [term, step] : {std::pair{3, 15}, {3, 30}, {4, 15}}) {
    EXPECT_EQ(save(term, step),
              FailedPrecondition(folder_, "/checkpoint: the checkpoint of step ", step,
                                 " was written in term ", term,
                                 ", but step 20 has been registered in term 4: another task saves "
                                 "now, and its checkpoints stay"));
    EXPECT_TRUE(*HasIndex(CheckpointPrefix(folder_, step))) << "may be the other task's by now";
  }
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 20);
  EXPECT_EQ(ListCheckpoints(folder_)->size(), 2u);
  ASSERT_EQ(save(5, 15), OkStatus()) << "a later term may go back";
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 15);
  ASSERT_EQ(save(0, 12), OkStatus()) << "a later run has only one writer";
  EXPECT_EQ(RecordedTerm(folder_).value(), 0);
  EXPECT_EQ(ReadFile(folder_ + "/checkpoint")->find('#'), std::string::npos);
}

TEST_F(CheckpointTest, RefusesADamagedTerm) {
  Save(1);
  for (const char* comment : {"term 4", "term x, step 1", "term 0, step 1", "term 4, step -1",
                              "term 9223372036854775807, step 1", "term 4, step 1, more"}) {
    ASSERT_TRUE(WriteFileAtomically(
                    folder_ + "/checkpoint",
                    StrCat("# tfjob: ", comment, "\nmodel_checkpoint_path: \"model.ckpt-1\"\n"))
                    .ok());
    EXPECT_TRUE(absl::IsDataLoss(LatestCheckpoint(folder_).status())) << comment;
  }
}

// The right to write is checked after each operation that may take a long time. Once the right is
// lost, no file is changed.
TEST_F(CheckpointTest, ALostRightIsNoticedUntilTheListIsRenamed) {
  Save(1);
  ASSERT_TRUE(RegisterCheckpoint(folder_, 1, 1, Time(1000s)).ok());
  const faults::Files before = faults::ReadFolder(folder_);
  int allowed = 0, asked = 0;
  const WriteRight right{
      .term = 7, .check = [&] { return asked++ < allowed ? OkStatus() : Unavailable("cut off"); }};
  {
    auto writer = *BundleWriter::Create(CheckpointPrefix(folder_, 2));
    ASSERT_TRUE(writer->Add("global_step", Tensor::Scalar<int64_t>(2)).ok());
    EXPECT_EQ(writer->Finish(right), Unavailable("cut off"));
  }
  EXPECT_EQ(faults::ReadFolder(folder_), before);
  asked = 0;
  Save(2);
  EXPECT_EQ(RegisterCheckpoint(folder_, 2, 1, Time(1000s), RealFileSystem(), right),
            Unavailable("cut off"));
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 1);
  EXPECT_TRUE(*HasIndex(CheckpointPrefix(folder_, 2))) << "may be another task's by now";
  // The right to write is lost after the rename: the list names the new checkpoint, and no
  // checkpoint is deleted.
  asked = 0;
  allowed = 1;
  Save(2);
  EXPECT_EQ(RegisterCheckpoint(folder_, 2, 1, Time(1000s), RealFileSystem(), right), OkStatus());
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 2);
  EXPECT_TRUE(BundleReader::Open(CheckpointPrefix(folder_, 1)).ok());
  EXPECT_EQ(SweepLeftovers(folder_, RealFileSystem(), right)->size(), 0u);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint.tmp.1", "left").ok());
  EXPECT_EQ(SweepLeftovers(folder_, RealFileSystem(), right).status(), Unavailable("cut off"));
}

TEST_F(CheckpointTest, AMissingDataFileIsDamage) {
  Save(7);
  unlink(DataFileName(CheckpointPrefix(folder_, 7), 0, 1).c_str());
  const Status status = BundleReader::Open(CheckpointPrefix(folder_, 7)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find("model.ckpt-7 lacks " + folder_ + "/model.ckpt-7.data-00000-of"),
            std::string::npos)
      << status;
}

// The folder comes from an untrusted source, and its list names files outside the folder.
TEST_F(CheckpointTest, NeitherReadsNorDeletesOutsideTheFolder) {
  const std::string other = testing::TempDir() + "/checkpoint_test_other";
  ASSERT_TRUE(MakeDirectories(other).ok());
  for (const std::string& file :
       {IndexFileName(other + "/model.ckpt-1"), DataFileName(other + "/model.ckpt-1", 0, 1)}) {
    ASSERT_TRUE(WriteFileAtomically(file, "theirs").ok());
  }
  const std::string list = StrCat("model_checkpoint_path: \"", other, "/model.ckpt-1\"\n",
                                  "all_model_checkpoint_paths: \"", other, "/model.ckpt-1\"\n",
                                  "all_model_checkpoint_paths: \"../checkpoint_test_other/",
                                  "model.ckpt-1\"\nall_model_checkpoint_paths: \"..\"\n",
                                  "all_model_checkpoint_paths: \"a\\000b\"\n");
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint", list).ok());
  EXPECT_TRUE(ListCheckpoints(folder_)->empty());
  EXPECT_TRUE(absl::IsDataLoss(LatestCheckpoint(folder_).status()));
  for (int64_t step : {5, 6, 7}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 1, Time(1000s)).ok());
  }
  EXPECT_EQ(ListDirectory(other)->size(), 2u);
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 7);
}

// TensorFlow writes full paths, which become wrong when the folder is moved.
TEST_F(CheckpointTest, TakesTheLastComponentOfAPath) {
  Save(3);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint",
                                  "model_checkpoint_path: \"/old/place/model.ckpt-3\"\n"
                                  "all_model_checkpoint_paths: \"/old/place/model.ckpt-3\"\n")
                  .ok());
  EXPECT_EQ((*LatestCheckpoint(folder_))->prefix, CheckpointPrefix(folder_, 3));
}

TEST_F(CheckpointTest, AListThatIsTooLongIsRefused) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint", std::string(17 << 20, '#')).ok());
  const Status status = LatestCheckpoint(folder_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

// An index that cannot be examined may belong to a good checkpoint. A link to itself simulates a
// disk that fails temporarily.
TEST_F(CheckpointTest, AnIndexThatCannotBeExaminedIsNotAMissingOne) {
  for (int64_t step : {1, 2}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 5, Time(1000s)).ok());
  }
  const std::string index = IndexFileName(CheckpointPrefix(folder_, 2));
  std::filesystem::remove(index);
  std::filesystem::create_symlink(index, index);
  const std::vector<std::string> before = *ListDirectory(folder_);
  const std::string list = *ReadFile(folder_ + "/checkpoint");
  for (const Status& status :
       {LatestCheckpoint(folder_).status(), ListCheckpoints(folder_).status(),
        RegisterCheckpoint(folder_, 3, 1, Time(1000s))}) {
    EXPECT_FALSE(status.ok());
    EXPECT_NE(Message(status).find(index), std::string_view::npos) << status;
  }
  const auto swept = SweepLeftovers(folder_);
  ASSERT_TRUE(swept.ok()) << swept.status();
  EXPECT_TRUE(swept->empty()) << swept->front();
  EXPECT_EQ(*ListDirectory(folder_), before);
  EXPECT_EQ(*ReadFile(folder_ + "/checkpoint"), list);
}

// An attacker who can write to the folder must not be able to make a task hang or exhaust its
// memory.
TEST_F(CheckpointTest, AListThatIsNotAFileIsRefused) {
  const std::string list = folder_ + "/checkpoint";
  ASSERT_EQ(mkfifo(list.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(LatestCheckpoint(folder_).status()));
  std::filesystem::remove(list);
  std::filesystem::create_symlink("/dev/zero", list);
  EXPECT_TRUE(absl::IsInvalidArgument(LatestCheckpoint(folder_).status()));
}

TEST_F(CheckpointTest, AnEmptyListIsDamageRatherThanANewFolder) {
  Save(3);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint", "").ok());
  for (const Status& status :
       {LatestCheckpoint(folder_).status(), ListCheckpoints(folder_).status(),
        RegisterCheckpoint(folder_, 4, 5, Time(1000s))}) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
  EXPECT_EQ(*ReadFile(folder_ + "/checkpoint"), "");
}

TEST_F(CheckpointTest, SweepsWhatInterruptedWritesHaveLeft) {
  Save(7);
  ASSERT_TRUE(RegisterCheckpoint(folder_, 7, 5, Time(1000s)).ok());
  const std::vector<std::string> kept = *ListDirectory(folder_);
  const std::vector<std::string> leftovers = {
      "checkpoint.tmp.0123456789abcdef", "finished.json.tmp.0123456789abcdef",
      "model.ckpt-8.data-00000-of-00001", "model.ckpt-8.data-00000-of-00001.tmp.1",
      "model.ckpt-8.index.tmp.0123456789abcdef"};
  const std::vector<std::string> foreign = {"model.ckpt-6.index", "model.tmp.12", "notes.tmp.txt",
                                            "other-8.data-00000-of-00001"};
  for (const std::vector<std::string>* names : {&leftovers, &foreign}) {
    for (const std::string& name : *names)
      ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + name, "x").ok());
  }
  EXPECT_EQ(*SweepLeftovers(folder_), leftovers);
  EXPECT_EQ(ListDirectory(folder_)->size(), kept.size() + foreign.size());
  EXPECT_TRUE(BundleReader::Open(CheckpointPrefix(folder_, 7)).ok());
}

// A writer that loses the right between its two renames must not remove the data file, which may
// already belong to the process that has the right.
TEST_F(CheckpointTest, AWriterWithoutTheRightLeavesTheFilesOfAnother) {
  const std::string prefix = CheckpointPrefix(folder_, 2);
  const auto write = [&](int64_t value, const WriteRight& right) {
    auto writer = *BundleWriter::Create(prefix);
    EXPECT_TRUE(writer->Add("value", Tensor::Scalar<int64_t>(value)).ok());
    return writer->Finish(right);
  };
  int asked = 0, last = 1;
  const WriteRight lost{.check = [&] {
    if (++asked < last) return OkStatus();
    EXPECT_EQ(write(7, {}), OkStatus());
    return Unavailable("cut off");
  }};
  for (last = 1; last <= 3; ++last) {
    asked = 0;
    EXPECT_EQ(write(5, lost), Unavailable("cut off"));
    const auto reader = BundleReader::Open(prefix);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->Read("value")->data<int64_t>()[0], 7) << last;
  }
}

// TensorFlow may list full paths, or name only the newest checkpoint.
TEST_F(CheckpointTest, AFailedListDeletesNoCheckpointThatIsListedAsAPath) {
  for (const char* list : {"model_checkpoint_path: \"/old/model.ckpt-1\"\n",
                           "model_checkpoint_path: \"model.ckpt-2\"\n"
                           "all_model_checkpoint_paths: \"/old/model.ckpt-1\"\n"}) {
    Save(1);
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint", list).ok());
    faults::FaultyFiles files;
    files.Fill(true);
    EXPECT_TRUE(absl::IsResourceExhausted(RegisterCheckpoint(folder_, 1, 5, Time(1000s), files)));
    EXPECT_TRUE(BundleReader::Open(CheckpointPrefix(folder_, 1)).ok()) << list;
  }
}

TEST_F(CheckpointTest, OnlyACompleteCheckpointIsRegistered) {
  Save(1);
  ASSERT_TRUE(RegisterCheckpoint(folder_, 1, 1, Time(1000s)).ok());
  EXPECT_EQ(RegisterCheckpoint(folder_, 2, 1, Time(1000s)),
            FailedPrecondition(folder_, " has no complete checkpoint model.ckpt-2"));
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 1);
  EXPECT_TRUE(BundleReader::Open(CheckpointPrefix(folder_, 1)).ok());
}

TEST_F(CheckpointTest, AFailedSaveLeavesTheFolderAsItWas) {
  Save(1);
  ASSERT_TRUE(RegisterCheckpoint(folder_, 1, 1, Time(1000s)).ok());
  const faults::Files before = faults::ReadFolder(folder_);
  faults::FaultyFiles files;
  {
    auto writer = BundleWriter::Create(CheckpointPrefix(folder_, 2), files);
    ASSERT_TRUE(writer.ok()) << writer.status();
    files.Fill(true);
    EXPECT_TRUE(absl::IsResourceExhausted((*writer)->Add("a", Tensor::Scalar<float>(1))));
  }
  EXPECT_EQ(faults::ReadFolder(folder_), before);
  Save(2);
  EXPECT_TRUE(absl::IsResourceExhausted(RegisterCheckpoint(folder_, 2, 1, Time(1000s), files)));
  EXPECT_EQ(faults::ReadFolder(folder_), before);
}

// After a power failure at any time, the list names either the old or the new checkpoint, and that
// checkpoint is complete.
TEST_F(CheckpointTest, SurvivesALossOfPowerAtAnyTime) {
  Save(1);
  ASSERT_TRUE(RegisterCheckpoint(folder_, 1, 1, Time(1000s)).ok());
  faults::RecordingFiles files(folder_, faults::ReadFolder(folder_));
  Save(2, files);
  ASSERT_TRUE(RegisterCheckpoint(folder_, 2, 1, Time(1000s), files).ok());
  const std::vector<faults::Files> states = files.StatesAfterPowerLoss();
  EXPECT_GT(states.size(), 20u);
  bool old_seen = false, new_seen = false;
  for (const faults::Files& state : states) {
    faults::WriteFolder(folder_, state);
    StatusOr<std::optional<Checkpoint>> latest = LatestCheckpoint(folder_);
    ASSERT_TRUE(latest.ok() && *latest) << latest.status();
    (*latest)->step == 1 ? old_seen = true : new_seen = true;
    // If an index exists, its data also exists, even if the list does not name the checkpoint.
    for (int64_t step : {1, 2}) {
      const std::string prefix = CheckpointPrefix(folder_, step);
      if (!std::filesystem::exists(IndexFileName(prefix)) && (*latest)->step != step) continue;
      auto reader = BundleReader::Open(prefix);
      ASSERT_TRUE(reader.ok()) << reader.status() << " latest " << (*latest)->step;
      EXPECT_EQ((*reader)->Read("global_step")->data<int64_t>()[0], step);
    }
  }
  EXPECT_TRUE(old_seen && new_seen);
}

TEST_F(CheckpointTest, FallsBackToTheNewestThatIsThere) {
  EXPECT_FALSE(LatestCheckpoint(folder_)->has_value());
  for (int64_t step : {1, 2}) {
    Save(step);
    ASSERT_TRUE(RegisterCheckpoint(folder_, step, 5, Time(1000s)).ok());
  }
  unlink(IndexFileName(CheckpointPrefix(folder_, 2)).c_str());
  EXPECT_EQ((*LatestCheckpoint(folder_))->step, 1);
}

}  // namespace
}  // namespace tfjob::io
