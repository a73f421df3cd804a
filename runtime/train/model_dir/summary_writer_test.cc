#include "runtime/train/model_dir/summary_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/fake_clock.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/io/record.h"
#include "tests/faults/faulty_files.h"

namespace tfjob::train {
namespace {

class SummaryWriterTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }

  SummaryOptions Options() {
    return {.folder = folder_,
            .show =
                [this](const std::string& problem) {
                  MutexLock lock(mutex_);
                  problem_ = problem;
                  changed_.NotifyAll();
                },
            .retry = 1ms,
            .files = &disk_};
  }
  bool AwaitProblem(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    MutexLock lock(mutex_);
    const auto holds = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return text.empty() ? problem_.empty() : problem_.find(text) != std::string::npos;
    };
    while (!holds() && changed_.WaitUntil(mutex_, deadline)) {
    }
    return holds();
  }
  // Returns the number of records in the only event file; -1 if there is no such file.
  int64_t Records() const {
    const auto names = ListDirectory(folder_);
    if (!names.ok() || names->size() != 1) return -1;
    const auto records = io::ParseRecords(*ReadFile(folder_ + "/" + names->front()));
    return records.ok() ? static_cast<int64_t>(records->size()) : -1;
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/summary_writer_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  FakeClock clock_{Time(1000s)};
  faults::FaultyFiles disk_;
  Mutex mutex_;
  CondVar changed_;
  std::string problem_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(SummaryWriterTest, WritesWhatItWasGiven) {
  {
    SummaryWriter writer(Options(), clock_);
    writer.AddGraph("a GraphDef");
    writer.AddStart(5);
    writer.AddScalars(6, {{"loss", 0.5}});
  }
  EXPECT_EQ(Records(), 4) << "the version, the graph, the start and the loss";
}

TEST_F(SummaryWriterTest, MakesNoFileWithoutASummary) {
  {
    SummaryWriter writer(Options(), clock_);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(SummaryWriterTest, AFullDiskIsToldAndTheSummariesAreWrittenLater) {
  disk_.Fill(true);
  SummaryWriter writer(Options(), clock_);
  writer.AddScalars(6, {{"loss", 0.5}});
  writer.AddScalars(7, {{"loss", 0.4}});
  ASSERT_TRUE(AwaitProblem("a summary of step 6 could not be written: write " + folder_));
  disk_.Fill(false);
  ASSERT_TRUE(AwaitProblem(""));
  writer.Flush(60s);
  EXPECT_EQ(Records(), 3);
}

TEST_F(SummaryWriterTest, AHangingDiskStopsNobodyAndLosesOnlyWhatDoesNotFit) {
  SummaryOptions options = Options();
  options.most_waiting = 2;
  SummaryWriter writer(std::move(options), clock_);
  disk_.Hang(true);
  writer.AddScalars(6, {{"loss", 0.5}});
  ASSERT_TRUE(disk_.AwaitHangingWrite());
  for (int64_t step = 7; step < 100; ++step) writer.AddScalars(step, {{"loss", 0.5}});
  clock_.Advance(10s);
  writer.AddScalars(100, {{"loss", 0.5}});
  EXPECT_TRUE(AwaitProblem("a summary of step 6 is still being written"));
  disk_.Hang(false);
  ASSERT_TRUE(AwaitProblem(""));
  writer.Flush(60s);
  EXPECT_EQ(Records(), 3) << "the version, and the two that fitted";
}

}  // namespace
}  // namespace tfjob::train
