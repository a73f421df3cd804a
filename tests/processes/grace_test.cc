// Asks a task to stop while it cannot stop in an orderly way, because another task that it needs is
// paused. The task must exit before the end of the grace period, which is shorter than usual.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/progress/client.h"
#include "runtime/rpc/server.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

// Runs a chief and a ps with a grace period of 3 s. They train until they are stopped.
class GraceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(MakeDirectories(folder_).ok());
    const std::string text = StrCat(R"(
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 0.001}
data: {train: {format: linear, weights: [2.0], examples: 64}}
batch_size: 8
threads: 1
log_step_count_steps: 0
max_steps: 1000000000
model_dir: )",
                                    folder_, "/model\n");
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/training.yaml", text).ok());
    auto chief = *rpc::Server::Start({.host = "127.0.0.1"});
    auto ps = *rpc::Server::Start({.host = "127.0.0.1"});
    const std::string chief_address = StrCat("127.0.0.1:", chief->port());
    const std::string cluster = StrCat(R"({"cluster":{"chief":[")", chief_address,
                                       R"("],"ps":["127.0.0.1:)", ps->port(), R"("]},"task":)");
    chief = nullptr;
    ps = nullptr;
    chief_ = Start("chief", cluster);
    ps_ = Start("ps", cluster);
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    int64_t step = 0;
    while (step < 20 && std::chrono::steady_clock::now() < deadline) {
      const auto progress = progress::ProgressClient(chief_address).Fetch(1s);
      if (progress.ok()) step = progress->step;
      std::this_thread::sleep_for(10ms);
    }
    ASSERT_GE(step, 20) << chief_->Output() << ps_->Output();
  }
  void TearDown() override {
    for (Program* program : {chief_.get(), ps_.get()}) {
      if (program != nullptr && !program->Ended()) program->Signal(SIGKILL);
    }
  }

  std::unique_ptr<Program> Start(const std::string& type, const std::string& cluster) const {
    const std::string task = StrCat(R"({"type":")", type, R"(","index":0}})");
    const std::map<std::string, std::string> environment = {
        {"TF_CONFIG", cluster + task}, {"TFJOB_UID", "uid"}, {"TFJOB_GRACE_PERIOD_SECONDS", "3"}};
    return std::make_unique<Program>(Runfile("runtime/cmd/tfjob-trainer"),
                                     std::vector{StrCat("--config=", folder_, "/training.yaml")},
                                     environment, StrCat(folder_, "/", type, ".log"));
  }
  // Pauses `other`, asks `asked` to stop, and returns the time until `asked` exits.
  static Duration EndWithout(Program& other, Program& asked) {
    other.Pause();
    const Duration begin = RealClock().Monotonic();
    asked.Signal(SIGTERM);
    EXPECT_EQ(asked.AwaitEnd(60s), 128 + SIGTERM) << asked.Output();
    return RealClock().Monotonic() - begin;
  }
  static bool Contains(const Program& program, const std::string& text) {
    return program.Output().find(text) != std::string::npos;
  }

  const std::string folder_ = testing::TempDir() + "/grace_test";
  std::unique_ptr<Program> chief_, ps_;
};

// With the usual grace period, the task would have 25 s to exit.
TEST_F(GraceTest, ATaskThatCannotEndIsGoneBeforeItsPeriodIsOver) {
  const Duration took = EndWithout(*ps_, *chief_);
  EXPECT_TRUE(Contains(*chief_, "exiting at once: the task did not end in time"))
      << chief_->Output();
  EXPECT_TRUE(Contains(*chief_, "grace_period=3s")) << chief_->Output();
  EXPECT_GE(took, 2s) << "it has 2.5 s to end by itself";
  EXPECT_LT(took, 15s);
}

// With the usual grace period, the server would keep serving for 20 s.
TEST_F(GraceTest, AServerDoesNotWaitLongerForTheChiefThanItsPeriodAllows) {
  const Duration took = EndWithout(*chief_, *ps_);
  EXPECT_TRUE(Contains(*ps_, "waits until the chief has the state at_most=2s")) << ps_->Output();
  EXPECT_FALSE(Contains(*ps_, "exiting at once")) << ps_->Output();
  EXPECT_GE(took, 1400ms) << "it serves for 1.5 s, and has 0.5 s for last words";
  EXPECT_LT(took, 15s);
}

}  // namespace
}  // namespace tfjob::processes
