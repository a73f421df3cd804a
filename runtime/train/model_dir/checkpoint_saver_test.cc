// Saves to a disk that is full, hangs or fails. No test sleeps: where time must pass, the policy's
// delays are milliseconds.
#include "runtime/train/model_dir/checkpoint_saver.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>

#include "runtime/base/fake_clock.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "tests/faults/faulty_files.h"

namespace tfjob::train {
namespace {

state::Snapshot EmptySnapshot(int64_t step) {
  return {.global_step = step, .variables = {}, .ledger = ""};
}

class CheckpointSaverTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    testing::internal::CaptureStderr();
  }
  void TearDown() override {
    if (!log_taken_) testing::internal::GetCapturedStderr();
  }

  SaverOptions Options(SavePolicy policy) {
    return {.write =
                [this](const state::Snapshot& snapshot, Time now, int64_t term) {
                  return SaveCheckpoint(folder_, {}, snapshot, 5, now, disk_, {.term = term});
                },
            .mark =
                [this](int64_t step, Time) {
                  MutexLock lock(mutex_);
                  marked_ = step;
                  return OkStatus();
                },
            .show =
                [this](const std::string& problem) {
                  MutexLock lock(mutex_);
                  problem_ = problem;
                  changed_.NotifyAll();
                },
            .policy = policy};
  }
  // Waits for a problem that contains `text` or, if `text` is "", until there is no problem.
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
  int64_t Marked() {
    MutexLock lock(mutex_);
    return marked_;
  }
  std::string Log() {
    log_taken_ = true;
    return testing::internal::GetCapturedStderr();
  }
  int64_t Newest() const {
    const auto latest = io::LatestCheckpoint(folder_);
    return latest.ok() && *latest ? (*latest)->step : -1;
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/checkpoint_saver_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  FakeClock clock_{Time(1000s)};
  faults::FaultyFiles disk_;
  StopSource stop_;
  Mutex mutex_;
  CondVar changed_;
  std::string problem_ ABSL_GUARDED_BY(mutex_);
  int64_t marked_ ABSL_GUARDED_BY(mutex_) = -1;
  bool log_taken_ = false;
};

TEST_F(CheckpointSaverTest, WritesInTheBackgroundWhenDue) {
  CheckpointSaver saver(Options({.every = 600s}), clock_);
  EXPECT_FALSE(saver.Due(5));
  clock_.Advance(600s);
  ASSERT_TRUE(saver.Due(5));
  saver.Save(EmptySnapshot(5));
  EXPECT_EQ(saver.SaveBeforeExit(EmptySnapshot(5)), OkStatus());
  EXPECT_EQ(saver.saved_step(), 5);
  EXPECT_EQ(Newest(), 5);
  EXPECT_EQ(saver.InFlight(), std::nullopt);
  EXPECT_FALSE(saver.Due(6));
}

// A value that cannot be read, because its server has been lost.
class Lost : public state::StreamedValue {
 public:
  Status Read(int64_t, std::span<std::byte>) const override {
    lost_ = true;
    return Unavailable("ps 1 was lost");
  }
  bool lost() const override { return lost_; }

 private:
  mutable std::atomic<bool> lost_ = false;
};

TEST_F(CheckpointSaverTest, AStateThatIsLostIsNotTriedAgain) {
  const state::TrainingState training{.variables = {{"table", DType::kFloat32, Shape({4})}}};
  SaverOptions options = Options({.retry = 1ms, .final_patience = 600s});
  options.write = [&](const state::Snapshot& snapshot, Time now, int64_t) {
    return SaveCheckpoint(folder_, training, snapshot, 5, now, disk_);
  };
  state::Snapshot snapshot = EmptySnapshot(5);
  snapshot.variables.emplace_back().streamed = {std::make_shared<Lost>()};
  CheckpointSaver saver(std::move(options), clock_);
  EXPECT_EQ(Message(saver.SaveLast(snapshot, stop_)),
            "the state of step 5 was lost before it was saved: the tasks that held it were lost");
  EXPECT_EQ(Newest(), -1);
}

// Each state is written with the term in which it was passed to the saver, even if the write
// happens later.
TEST_F(CheckpointSaverTest, AStateKeepsItsTerm) {
  CheckpointSaver saver(Options({.every_steps = 10}), clock_);
  disk_.Hang(true);
  ASSERT_TRUE(saver.Due(10));
  saver.Save(EmptySnapshot(10), 3);
  ASSERT_TRUE(disk_.AwaitHangingWrite());
  saver.SaveNext(EmptySnapshot(13), 4);
  disk_.Hang(false);
  ASSERT_TRUE(saver.AwaitWrites(60s, stop_));
  EXPECT_EQ(io::RecordedTerm(folder_).value(), 4);
  EXPECT_EQ(saver.SaveBeforeExit(EmptySnapshot(14), 5), OkStatus());
  EXPECT_EQ(io::RecordedTerm(folder_).value(), 5);
  EXPECT_EQ(Newest(), 14);
}

// Another task has taken over, so no further attempt can succeed until the group has formed again.
TEST_F(CheckpointSaverTest, TheLastSaveEndsAtOnceIfTheRightIsLost) {
  std::atomic<bool> may_write = true;
  SaverOptions options = Options({.final_patience = 20s});
  options.may_write = [&] { return may_write ? OkStatus() : Unavailable("cut off"); };
  CheckpointSaver saver(std::move(options), RealClock());
  disk_.Hang(true);
  std::thread loses([&] {
    EXPECT_TRUE(disk_.AwaitHangingWrite());
    may_write = false;
  });
  EXPECT_EQ(saver.SaveLast(EmptySnapshot(5), stop_), Aborted("cut off"));
  loses.join();
  disk_.Hang(false);
  may_write = true;
  EXPECT_EQ(saver.SaveLast(EmptySnapshot(5), stop_), OkStatus());
  EXPECT_EQ(Newest(), 5);
  EXPECT_EQ(Marked(), 5);
}

TEST_F(CheckpointSaverTest, AnAbandonedSaverDoesNotWaitForTheDisk) {
  auto disk = std::make_shared<faults::FaultyFiles>();
  auto ended = std::make_shared<Event>();
  SaverOptions options = Options({});
  options.write = [disk, ended, folder = folder_](const state::Snapshot& snapshot, Time now,
                                                  int64_t) {
    const Status saved = SaveCheckpoint(folder, {}, snapshot, 5, now, *disk);
    ended->Set();
    return saved;
  };
  const auto began = std::chrono::steady_clock::now();
  {
    CheckpointSaver saver(std::move(options), RealClock());
    disk->Hang(true);
    saver.SaveNext(EmptySnapshot(5));
    ASSERT_TRUE(disk->AwaitHangingWrite());
    saver.SaveNext(EmptySnapshot(6));
    saver.Abandon();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
  disk->Hang(false);
  ended->WaitFor(60s);
  EXPECT_EQ(Newest(), 5) << "the state that was waiting is dropped";
}

TEST_F(CheckpointSaverTest, AwaitsTheWriteInProgress) {
  CheckpointSaver saver(Options({}), RealClock());
  EXPECT_TRUE(saver.AwaitWrites(1ms, stop_));
  saver.Require();
  ASSERT_TRUE(saver.Due(5));
  disk_.Hang(true);
  saver.Save(EmptySnapshot(5));
  ASSERT_TRUE(disk_.AwaitHangingWrite());
  EXPECT_FALSE(saver.AwaitWrites(1ms, stop_));
  disk_.Hang(false);
  EXPECT_TRUE(saver.AwaitWrites(60s, stop_));
  EXPECT_EQ(saver.saved_step(), 5);
}

// The writer thread finishes the copy, unless a caller that needs the state finishes it earlier.
TEST_F(CheckpointSaverTest, TheCopyIsFinishedBeforeItIsWritten) {
  Event write, finished;
  std::atomic<int> copies = 0;
  SaverOptions options = Options({});
  options.write = [&](const state::Snapshot& snapshot, Time, int64_t) {
    EXPECT_GT(copies, 0);
    EXPECT_EQ(snapshot.global_step, 5);
    finished.Set();
    write.WaitFor(60s);
    return OkStatus();
  };
  CheckpointSaver saver(std::move(options), clock_);
  saver.Require();
  ASSERT_TRUE(saver.Due(5));
  saver.Save(state::SnapshotCopy(EmptySnapshot(5), [&] { ++copies; }));
  finished.WaitFor(60s);
  const int before = copies;
  EXPECT_EQ(saver.InFlight()->global_step, 5);
  EXPECT_EQ(copies, before + 1);
  write.Set();
}

TEST_F(CheckpointSaverTest, AStateThatCannotBeCopiedAgainFollowsTheWriteInProgress) {
  {
    CheckpointSaver saver(Options({.every_steps = 10}), clock_);
    disk_.Hang(true);
    ASSERT_TRUE(saver.Due(10));
    saver.Save(EmptySnapshot(10));
    ASSERT_TRUE(disk_.AwaitHangingWrite());
    EXPECT_FALSE(saver.Due(20));
    saver.SaveNext(EmptySnapshot(13));
    saver.SaveNext(EmptySnapshot(14));
    EXPECT_EQ(saver.InFlight()->global_step, 14) << "it is what lost servers are filled with";
    saver.Restored(14);
    EXPECT_NE(saver.saved_step(), 14);
    disk_.Hang(false);
  }  // the destructor waits for both writes
  EXPECT_EQ(Newest(), 14);
  const std::string log = Log();
  EXPECT_EQ(log.find("step=13"), std::string::npos) << "it was replaced";
}

TEST_F(CheckpointSaverTest, AStateThatCannotBeCopiedAgainIsWrittenAtOnceIfNothingElseIs) {
  CheckpointSaver saver(Options({.every_steps = 10}), clock_);
  saver.SaveNext(EmptySnapshot(3));
  EXPECT_EQ(saver.SaveBeforeExit(EmptySnapshot(3)), OkStatus());
  EXPECT_EQ(Newest(), 3);
}

TEST_F(CheckpointSaverTest, AFullDiskIsToldAndTheNextSaveIsMade) {
  CheckpointSaver saver(Options({.every_steps = 10}), clock_);
  disk_.Fill(true);
  ASSERT_TRUE(saver.Due(10));
  saver.Save(EmptySnapshot(10));
  ASSERT_TRUE(AwaitProblem("the checkpoint of step 10 could not be saved"));
  EXPECT_FALSE(saver.Due(19));
  disk_.Fill(false);
  ASSERT_TRUE(saver.Due(20));
  saver.Save(EmptySnapshot(20));
  ASSERT_TRUE(AwaitProblem(""));
  EXPECT_EQ(Newest(), 20);
  const std::string log = Log();
  EXPECT_NE(log.find("No space left on device"), std::string::npos) << log;
  EXPECT_NE(log.find("training goes on; next attempt in 10s"), std::string::npos) << log;
}

TEST_F(CheckpointSaverTest, AHangingDiskStopsNobodyAndItsStateIsAtHand) {
  CheckpointSaver saver(Options({.every_steps = 10}), clock_);
  disk_.Hang(true);
  ASSERT_TRUE(saver.Due(10));
  saver.Save(EmptySnapshot(10));
  ASSERT_TRUE(disk_.AwaitHangingWrite());
  EXPECT_FALSE(saver.Due(20)) << "another one is being written";
  ASSERT_NE(saver.InFlight(), std::nullopt);
  EXPECT_EQ(saver.InFlight()->global_step, 10);
  clock_.Advance(11s);
  EXPECT_FALSE(saver.Due(30));
  EXPECT_TRUE(AwaitProblem("step 10 is still being written after 11s"));
  disk_.Hang(false);
  ASSERT_TRUE(AwaitProblem(""));
  EXPECT_TRUE(saver.Due(31));
}

// If another state is being written when the task is asked to stop, the last step must still be
// saved.
TEST_F(CheckpointSaverTest, BeforeExitTheLastStepIsSavedAfterTheOneThatIsBeingWritten) {
  CheckpointSaver saver(Options({.every_steps = 10}), clock_);
  disk_.Hang(true);
  ASSERT_TRUE(saver.Due(10));
  saver.Save(EmptySnapshot(10));
  ASSERT_TRUE(disk_.AwaitHangingWrite());
  std::thread release([&] { disk_.Hang(false); });
  EXPECT_EQ(saver.SaveBeforeExit(EmptySnapshot(13)), OkStatus());
  release.join();
  EXPECT_EQ(Newest(), 13);
  EXPECT_EQ(io::ListCheckpoints(folder_)->size(), 2u);
  EXPECT_EQ(Marked(), -1);
}

TEST_F(CheckpointSaverTest, AFailedSaveBeforeExitNamesTheStep) {
  CheckpointSaver saver(Options({}), clock_);
  disk_.Fill(true);
  const Status status = saver.SaveBeforeExit(EmptySnapshot(13));
  EXPECT_TRUE(Message(status).starts_with("the checkpoint of step 13 was not saved: ")) << status;
}

TEST_F(CheckpointSaverTest, TheLastSaveIsTriedUntilThereIsRoom) {
  CheckpointSaver saver(Options({.retry = 1ms, .final_patience = 600s}), RealClock());
  disk_.Fill(true);
  std::thread cleaner([&] {
    EXPECT_TRUE(AwaitProblem("the checkpoint of step 90 could not be saved"));
    disk_.Fill(false);
  });
  EXPECT_EQ(saver.SaveLast(EmptySnapshot(90), stop_), OkStatus());
  cleaner.join();
  EXPECT_EQ(Newest(), 90);
  EXPECT_EQ(Marked(), 90);
}

TEST_F(CheckpointSaverTest, TheLastSaveIsGivenUpAndTheOlderCheckpointIsUntouched) {
  CheckpointSaver saver(Options({.retry = 1ms, .final_patience = 1s}), RealClock());
  saver.Require();
  ASSERT_TRUE(saver.Due(40));
  saver.Save(EmptySnapshot(40));
  ASSERT_EQ(saver.SaveBeforeExit(EmptySnapshot(40)), OkStatus());
  disk_.Fill(true);
  const Status status = saver.SaveLast(EmptySnapshot(90), stop_);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(Message(status).starts_with("the checkpoint of step 90 was not saved: ")) << status;
  EXPECT_NE(Message(status).find("No space left on device"), std::string::npos) << status;
  EXPECT_EQ(Marked(), -1);
  EXPECT_EQ(Newest(), 40);
  EXPECT_TRUE(LoadCheckpoint(io::CheckpointPrefix(folder_, 40), {}).ok());
  EXPECT_EQ(ListDirectory(folder_)->size(), 3u) << "an index, a data file and the list";
}

TEST_F(CheckpointSaverTest, AStopEndsTheLastSaveAfterOneMoreAttempt) {
  CheckpointSaver saver(Options({.retry = 600s, .final_patience = 6000s}), RealClock());
  disk_.Fill(true);
  std::thread asker([&] {
    EXPECT_TRUE(AwaitProblem("the checkpoint of step 90 could not be saved"));
    disk_.Fill(false);
    stop_.Request(SIGTERM);
  });
  EXPECT_TRUE(absl::IsCancelled(saver.SaveLast(EmptySnapshot(90), stop_)));
  asker.join();
  EXPECT_EQ(Newest(), 90);
  EXPECT_EQ(Marked(), -1) << "the run is not over";
}

// The thread that hangs outlives the saver, so everything that it uses must outlive the test.
TEST_F(CheckpointSaverTest, AWriteThatNeverEndsIsGivenUp) {
  struct Disk {
    Event hangs, released, done;
  };
  static Disk disk;
  {
    SaverOptions options = Options({.final_patience = 50ms});
    options.show = nullptr;
    options.write = [](const state::Snapshot&, Time, int64_t) {
      disk.hangs.Set();
      disk.released.WaitFor(600s);
      disk.done.Set();
      return OkStatus();
    };
    CheckpointSaver saver(std::move(options), RealClock());
    const Status status = saver.SaveLast(EmptySnapshot(90), stop_);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(Message(status).find("its write does not end"), std::string::npos) << status;
    disk.hangs.WaitFor(60s);
  }
  disk.released.Set();
  disk.done.WaitFor(60s);
}

TEST_F(CheckpointSaverTest, TellsEveryTenSecondsThatAStopWaitsForTheDisk) {
  CheckpointSaver saver(Options({.slow = 1ms}), RealClock());
  disk_.Hang(true);
  std::thread release([&] {
    EXPECT_TRUE(AwaitProblem("the checkpoint of step 5 is still being written"));
    disk_.Hang(false);
  });
  EXPECT_EQ(saver.SaveBeforeExit(EmptySnapshot(5)), OkStatus());
  release.join();
  EXPECT_EQ(Newest(), 5);
}

}  // namespace
}  // namespace tfjob::train
