#include "runtime/train/model_dir/model_directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/io/checkpoint_directory.h"

namespace tfjob::train {
namespace {

state::Snapshot StateAt(int64_t step) {
  return {.global_step = step, .variables = {}, .ledger = ""};
}

// Tests model directories that several tasks write to, one after another.
class ModelDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_ + "/eval").ok());
  }
  ModelDirectory Shared() {
    return ModelDirectory({.folder = folder_, .keep = 5, .run = run_, .may_write = [this] {
                             return may_write_ ? OkStatus() : Unavailable("cut off");
                           }});
  }
  int64_t Newest() const {
    const auto latest = io::LatestCheckpoint(folder_);
    return latest.ok() && *latest ? (*latest)->step : -1;
  }
  bool Has(const std::string& name) const { return std::filesystem::exists(folder_ + "/" + name); }

  const std::string folder_ = StrCat(testing::TempDir(), "/model_directory_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  const RunMark run_{.job_uid = "uid", .attempt = 2};
  const RunMark earlier_{.job_uid = "uid", .attempt = 1};
  bool may_write_ = true;
};

TEST_F(ModelDirectoryTest, TheFirstSavePreparesTheFolder) {
  ASSERT_EQ(MarkFinished(folder_, earlier_, 7, Time(1s)), OkStatus());
  ASSERT_EQ(MarkFinished(folder_ + "/eval", earlier_, 7, Time(1s)), OkStatus());
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint.tmp.1", "left").ok());
  ModelDirectory directory = Shared();
  EXPECT_EQ(directory.Save(StateAt(8), Time(2s), 3), OkStatus());
  EXPECT_EQ(Newest(), 8);
  EXPECT_EQ(io::RecordedTerm(folder_).value(), 3);
  EXPECT_FALSE(Has("finished.json"));
  EXPECT_FALSE(Has("eval/finished.json"));
  EXPECT_FALSE(Has("checkpoint.tmp.1"));
}

// Another task has ended the run. A task that still believes that it has the right to write must
// not remove the marker, because late tasks wait for the marker.
TEST_F(ModelDirectoryTest, KeepsTheMarkOfItsOwnRun) {
  ASSERT_EQ(MarkFinished(folder_, run_, 7, Time(1s)), OkStatus());
  ASSERT_EQ(MarkFinished(folder_ + "/eval", run_, 7, Time(1s)), OkStatus());
  ModelDirectory directory = Shared();
  EXPECT_EQ(directory.Save(StateAt(8), Time(2s), 3), OkStatus());
  EXPECT_EQ(*FinishedStep(folder_, run_), 7);
  EXPECT_EQ(*FinishedStep(folder_ + "/eval", run_), 7);
}

TEST_F(ModelDirectoryTest, ChangesNothingWithoutTheRight) {
  ASSERT_EQ(MarkFinished(folder_, earlier_, 7, Time(1s)), OkStatus());
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint.tmp.1", "left").ok());
  may_write_ = false;
  ModelDirectory directory = Shared();
  EXPECT_EQ(directory.Save(StateAt(8), Time(2s), 3), Unavailable("cut off"));
  EXPECT_EQ(directory.Mark(8, Time(2s)), Unavailable("cut off"));
  EXPECT_EQ(Newest(), -1);
  EXPECT_EQ(*FinishedStep(folder_, earlier_), 7);
  EXPECT_TRUE(Has("checkpoint.tmp.1"));
  may_write_ = true;
  EXPECT_EQ(directory.Save(StateAt(8), Time(2s), 3), OkStatus());
  EXPECT_EQ(directory.Mark(8, Time(2s)), OkStatus());
  EXPECT_EQ(*FinishedStep(folder_, run_), 8);
}

TEST_F(ModelDirectoryTest, DoesNotReplaceACheckpointThatTheTaskBeforeHasSaved) {
  ModelDirectory before = Shared(), after = Shared();
  ASSERT_EQ(before.Save(StateAt(8), Time(2s), 3), OkStatus());
  EXPECT_EQ(after.Save(StateAt(8), Time(2s), 4), OkStatus());
  EXPECT_EQ(io::RecordedTerm(folder_).value(), 3);
  EXPECT_EQ(after.Save(StateAt(9), Time(2s), 4), OkStatus());
  EXPECT_EQ(io::RecordedTerm(folder_).value(), 4);
  EXPECT_EQ(before.Save(StateAt(10), Time(2s), 3).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Newest(), 9);
}

// While this task had no right to write, another task may have written to the folder.
TEST_F(ModelDirectoryTest, PreparesTheFolderAgainWhenTheRightReturns) {
  ModelDirectory directory = Shared();
  ASSERT_EQ(directory.Save(StateAt(8), Time(2s), 3), OkStatus());
  ASSERT_EQ(Shared().Save(StateAt(9), Time(3s), 4), OkStatus());
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint.tmp.1", "left").ok());
  EXPECT_EQ(directory.Save(StateAt(9), Time(4s), 5), OkStatus());
  EXPECT_EQ(io::RecordedTerm(folder_).value(), 4) << "step 9 has been saved";
  EXPECT_FALSE(Has("checkpoint.tmp.1"));
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/checkpoint.tmp.1", "of this task").ok());
  EXPECT_EQ(directory.Save(StateAt(10), Time(5s), 5), OkStatus());
  EXPECT_TRUE(Has("checkpoint.tmp.1")) << "only once per term";
}

// The disk was full when the run began.
TEST_F(ModelDirectoryTest, TheFirstSaveWritesAClaimThatWasNotWrittenBefore) {
  const auto late_claim = std::make_shared<LateClaim>();
  ModelDirectory directory({.folder = folder_,
                            .keep = 5,
                            .run = run_,
                            .may_write = [] { return OkStatus(); },
                            .late_claim = late_claim});
  late_claim->Expect({.first_term = 7, .job_uid = "uid", .attempt = 2});
  ASSERT_TRUE(MakeDirectories(folder_ + "/group.json").ok());
  EXPECT_FALSE(directory.Save(StateAt(8), Time(2s), 3).ok());
  EXPECT_EQ(Newest(), -1) << "a checkpoint without the claim";
  EXPECT_FALSE(late_claim->TakeWritten());
  std::filesystem::remove(folder_ + "/group.json");
  EXPECT_EQ(directory.Save(StateAt(8), Time(2s), 3), OkStatus());
  EXPECT_EQ(ReadClaim(folder_).value().first_term, 7);
  EXPECT_TRUE(late_claim->TakeWritten());
  EXPECT_FALSE(late_claim->TakeWritten());
  std::filesystem::remove(folder_ + "/group.json");
  EXPECT_EQ(directory.Save(StateAt(9), Time(2s), 4), OkStatus());
  EXPECT_FALSE(Has("group.json")) << "it has been written";
}

TEST_F(ModelDirectoryTest, ATaskThatAloneWritesRemovesEveryMark) {
  ASSERT_EQ(MarkFinished(folder_, run_, 7, Time(1s)), OkStatus());
  ModelDirectory directory({.folder = folder_, .keep = 5, .run = run_});
  EXPECT_EQ(directory.Prepare(), OkStatus());
  EXPECT_FALSE(Has("finished.json"));
  EXPECT_EQ(directory.Save(StateAt(8), Time(2s), 0), OkStatus());
  EXPECT_EQ(Newest(), 8);
}

}  // namespace
}  // namespace tfjob::train
