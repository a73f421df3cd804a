// tfjob-trainer as a process of its own: how it ends, and what the next one finds.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <optional>

#include "runtime/base/file.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/rpc/server.h"
#include "runtime/train/checkpoint.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
  }
  // One task that finds the line y = 2x + 10 alone.
  Program Start(int64_t max_steps, std::map<std::string, std::string> environment = {}) {
    const std::string file = folder_ + "/training.yaml";
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 0.1}
data:
  train: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, low: -1.0, high: 1.0, examples: 64}
batch_size: 8
threads: 1
save_checkpoints_steps: 1000000000
log_step_count_steps: 1000
max_steps: )",
                                    max_steps, "\nmodel_dir: ", folder_, "/model\n");
    EXPECT_TRUE(WriteFileAtomically(file, text).ok());
    return Program(Runfile("runtime/cmd/tfjob-trainer"), {StrCat("--config=", file)}, environment,
                   StrCat(folder_, "/log", ++runs_));
  }
  int64_t LastCheckpoint() const {
    auto latest = io::LatestCheckpoint(folder_ + "/model");
    return latest.ok() && *latest ? (*latest)->step : -1;
  }
  std::optional<int64_t> Finished() const {
    auto step = train::FinishedStep(folder_ + "/model", {"", 0});
    return step.ok() ? *step : std::nullopt;
  }

  const std::string folder_ = StrCat(testing::TempDir(), "/trainer_test_",
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
  int runs_ = 0;
};

TEST_F(TrainerTest, SigtermSavesAndEndsWith143AndTheNextRunGoesOn) {
  Program first = Start(1'000'000'000);
  ASSERT_TRUE(first.AwaitOutput("step step=", 60s)) << first.Output();
  first.Signal(SIGTERM);
  EXPECT_EQ(first.AwaitEnd(60s), 143) << first.Output();
  const int64_t saved = LastCheckpoint();
  ASSERT_GE(saved, 1000) << first.Output();
  EXPECT_EQ(Finished(), std::nullopt);

  Program second = Start(saved + 100);
  EXPECT_EQ(second.AwaitEnd(60s), 0) << second.Output();
  EXPECT_NE(second.Output().find(
                StrCat("restored a checkpoint model_dir=", folder_, "/model step=", saved)),
            std::string::npos)
      << second.Output();
  EXPECT_EQ(LastCheckpoint(), saved + 100);
  EXPECT_EQ(Finished(), saved + 100);

  Program third = Start(saved + 100);
  EXPECT_EQ(third.AwaitEnd(60s), 0) << third.Output();
  EXPECT_EQ(LastCheckpoint(), saved + 100) << third.Output();
  EXPECT_EQ(Finished(), saved + 100);
}

TEST_F(TrainerTest, ATakenPortIsNamedAndEndsWithACodeThatARetryMayCure) {
  auto holder = *rpc::Server::Start({.host = "127.0.0.1"});
  const std::string address = StrCat("127.0.0.1:", holder->port());
  Program trainer =
      Start(10, {{"TF_CONFIG", StrCat(R"({"cluster":{"worker":[")", address,
                                      R"("]},"task":{"type":"worker","index":0}})")}});
  EXPECT_EQ(trainer.AwaitEnd(60s), 138);
  EXPECT_NE(trainer.Output().find(address + ": the port is taken by another process"),
            std::string::npos)
      << trainer.Output();
  EXPECT_EQ(LastCheckpoint(), -1);
}

TEST_F(TrainerTest, BadInputEndsWithTwo) {
  Program trainer = Start(10, {{"TF_CONFIG", "{"}});
  EXPECT_EQ(trainer.AwaitEnd(60s), 2) << trainer.Output();
}

}  // namespace
}  // namespace tfjob::processes
