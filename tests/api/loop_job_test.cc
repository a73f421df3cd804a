// Runs a program with a custom training loop,
// deploy/examples/cpp/custom-loop.cc, in each task of a job, as processes on
// this machine, and kills some of them.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

constexpr int kTasks = 3;  // a chief and two workers

std::string FolderOf(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

class LoopJob {
 public:
  explicit LoopJob(const std::string& name) : folder_(FolderOf(name)) {
    for (std::string& address : addresses_) address = wire::TestAddress();
  }

  // Starts all tasks. Task 0 is the chief, task i > 0 is worker i - 1.
  void Start(int64_t epochs) {
    for (int i = 0; i < kTasks; ++i) Start(i, epochs);
  }
  void Start(int i, int64_t epochs) {
    const std::string tf_config =
        StrCat(R"({"cluster":{"chief":[")", addresses_[0], R"("],"worker":[")", addresses_[1],
               R"(",")", addresses_[2], R"("]},"task":{"type":")", i == 0 ? "chief" : "worker",
               R"(","index":)", i == 0 ? 0 : i - 1, "}}");
    programs_[i] = std::make_unique<Program>(
        Runfile("tests/api/custom-loop"),
        std::vector<std::string>{folder_ + "/model", StrCat(epochs)},
        std::map<std::string, std::string>{{"TF_CONFIG", tf_config}, {"TFJOB_UID", "job"}},
        StrCat(folder_, "/", i, ".log"));
  }

  Program& operator[](int i) { return *programs_[i]; }

 private:
  const std::string folder_;
  std::string addresses_[kTasks];
  std::unique_ptr<Program> programs_[kTasks];
};

// Returns the number after the last occurrence of `key` in the text, or -1.
double LastNumber(const std::string& text, const std::string& key) {
  const size_t at = text.rfind(key);
  return at == std::string::npos ? -1 : std::stod(text.substr(at + key.size()));
}

TEST(LoopProgram, ThreeTasksTrainTogether) {
  LoopJob job("loop_trains");
  job.Start(/*epochs=*/10);
  for (int i = 0; i < kTasks; ++i) EXPECT_EQ(job[i].AwaitEnd(120s), 0) << job[i].Output();
  const std::string output = job[0].Output();
  EXPECT_NE(output.find("epoch 10, step 210: loss"), std::string::npos)
      << "an epoch has ⌈1003 / 48⌉ steps\n"
      << output;
  EXPECT_GE(LastNumber(output, "loss "), 0) << output;
  EXPECT_LT(LastNumber(output, "loss "), 0.2) << output;
  for (int i = 1; i < kTasks; ++i)
    EXPECT_EQ(job[i].Output().find("error"), std::string::npos) << job[i].Output();
}

// The others notice at once that the sockets of the lost task are closed.
TEST(LoopProgram, IfATaskIsKilledTheOthersEndAndAllContinueFromTheCheckpoint) {
  const char* const names[] = {"chief 0", "worker 0", "worker 1"};
  LoopJob job("loop_killed");
  int64_t epochs = 0;
  for (const int victim : {2, 0, 1}) {
    job.Start(/*epochs=*/1'000'000);
    ASSERT_TRUE(job[0].AwaitOutput(StrCat("epoch ", epochs + 3, ","), 60s)) << job[0].Output();
    if (epochs > 0) {
      EXPECT_EQ(job[0].Output().find(StrCat("epoch ", epochs, ",")), std::string::npos)
          << "the job has started from scratch\n"
          << job[0].Output();
    }
    job[victim].Signal(SIGKILL);
    for (int i = 0; i < kTasks; ++i) {
      if (i == victim) continue;
      EXPECT_EQ(job[i].AwaitEnd(5s), 138) << "a code after which the operator starts it again\n"
                                          << job[i].Output();
      const std::string output = job[i].Output();
      EXPECT_NE(output.find("can no longer train together"), std::string::npos) << output;
      EXPECT_NE(output.find(names[victim]), std::string::npos) << output;
    }
    EXPECT_EQ(job[victim].AwaitEnd(5s), 128 + SIGKILL);
    epochs = static_cast<int64_t>(LastNumber(job[0].Output(), "epoch "));
  }
}

// A replacement that is started while the other tasks still run waits until
// these have ended, too.
TEST(LoopProgram, AReplacementWaitsForTheOthers) {
  LoopJob job("loop_replaced");
  job.Start(/*epochs=*/1'000'000);
  ASSERT_TRUE(job[0].AwaitOutput("epoch 2,", 60s)) << job[0].Output();
  job[0].Signal(SIGSTOP);
  job[1].Signal(SIGKILL);
  ASSERT_EQ(job[1].AwaitEnd(5s), 128 + SIGKILL);
  ASSERT_EQ(job[2].AwaitEnd(15s), 138) << job[2].Output();
  job.Start(1, /*epochs=*/5);
  job.Start(2, /*epochs=*/5);
  job[0].Signal(SIGCONT);
  ASSERT_EQ(job[0].AwaitEnd(15s), 138) << job[0].Output();
  job.Start(0, /*epochs=*/5);
  for (int i = 0; i < kTasks; ++i) EXPECT_EQ(job[i].AwaitEnd(60s), 0) << job[i].Output();
}

}  // namespace
}  // namespace tfjob::processes
