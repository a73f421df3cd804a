// Tests runs that a program starts itself, with its own model, data and state, and with a guest
// that is called between the steps.
#include "runtime/train/run_guest.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/json.h"
#include "runtime/data/source.h"
#include "runtime/model/keras.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"

namespace tfjob::train {
namespace {

// Trains y = 2x on ten examples, without any files.
class RunGuestTest : public testing::Test {
 protected:
  RunGuestTest() {
    const auto layers = ParseJson(R"([{"Dense": {"units": 1}}])", "layers");
    model_ = std::make_shared<const model::Model>(*model::ReadLayers(JsonField(*layers)));
    config_.loss.name = "mean_squared_error";
    config_.optimizer.name = "adam";
    config_.batch_size = 4;
    config_.max_steps = 6;
    config_.threads = 1;
    Tensor x(DType::kFloat32, {10, 1}), y(DType::kFloat32, {10, 1});
    for (size_t i = 0; i < 10; ++i) {
      x.data<float>()[i] = static_cast<float>(i);
      y.data<float>()[i] = 2 * static_cast<float>(i);
    }
    source_ = *ArraySource({}, Split::kTrain, *model_, {{"x", x}, {"y", y}});
  }

  Status Run(RunGuest* guest, std::shared_ptr<const state::Snapshot> start = nullptr,
             int64_t drawn = 0) {
    TaskOptions options{.config = config_};
    options.inputs = {.model = model_,
                      .train = source_,
                      .eval = nullptr,
                      .start = std::move(start),
                      .drawn = drawn};
    options.device = device_;
    TaskContext context(std::move(options), stop_, RealClock());
    return RunTraining(context, guest);
  }

  std::shared_ptr<const model::Model> model_;
  std::shared_ptr<const data::Source> source_;
  config::TrainingConfig config_;
  std::string device_;  // "" for the CPU
  StopSource stop_;
};

// Records the calls, and keeps the state from the end of the run.
class Recorder : public RunGuest {
 public:
  Status OnStart(Trainer& run) override {
    calls += StrCat("start ", run.global_step(), " of ", run.total_steps(), "\n");
    return OkStatus();
  }
  Status OnStep(Trainer& run, const strategy::MetricTotals& batch,
                const strategy::StepOutcome& outcome) override {
    calls += StrCat("step ", outcome.global_step, ": ", batch.examples, " examples\n");
    return on_step ? on_step(run) : OkStatus();
  }
  Status OnEnd(Trainer& run) override {
    calls += StrCat("end ", run.global_step(), "\n");
    ASSIGN_OR_RETURN(state::Snapshot snapshot, run.strategy().TakeSnapshot());
    end = std::make_shared<const state::Snapshot>(std::move(snapshot));
    return OkStatus();
  }

  std::string calls;
  std::function<Status(Trainer&)> on_step;
  std::shared_ptr<const state::Snapshot> end;
};

float Kernel(const state::Snapshot& snapshot) {
  return snapshot.variables[0].value.data<float>()[0];
}

TEST_F(RunGuestTest, TakesPartInEveryStep) {
  Recorder guest;
  const Status run = Run(&guest);
  ASSERT_TRUE(run.ok()) << run;
  EXPECT_EQ(guest.calls,
            "start 0 of 6\nstep 1: 4 examples\nstep 2: 4 examples\nstep 3: 2 examples\n"
            "step 4: 4 examples\nstep 5: 4 examples\nstep 6: 2 examples\nend 6\n");
}

// Adds up the totals, and compares them only after every fourth step and at the end.
class TotalsRecorder : public RunGuest {
 public:
  bool NeedsTotals(int64_t step) override { return step % 4 == 0; }
  Status OnStart(Trainer&) override { return OkStatus(); }
  Status OnStep(Trainer& run, const strategy::MetricTotals& batch,
                const strategy::StepOutcome& outcome) override {
    totals_.Add(batch);
    with_totals += batch.examples > 0 ? 1 : 0;
    if (outcome.global_step % 4 == 0 || outcome.global_step == run.total_steps())
      sums.push_back({totals_.loss_sum, static_cast<double>(totals_.examples)});
    return OkStatus();
  }
  Status OnEnd(Trainer&) override { return OkStatus(); }

  std::vector<std::vector<double>> sums;
  int with_totals = 0;

 private:
  strategy::MetricTotals totals_;
};

// The fake device runs the CPU's kernels, so the totals have the same bits, although the device
// keeps them until they are needed.
TEST_F(RunGuestTest, ReceivesTheTotalsOfADeviceThatComputesLate) {
  config_.max_steps = 10;
  TotalsRecorder on_cpu, on_fake;
  ASSERT_EQ(Run(&on_cpu), OkStatus());
  device_ = "fake:3";
  ASSERT_EQ(Run(&on_fake), OkStatus());
  EXPECT_EQ(on_cpu.sums.size(), 3);
  EXPECT_EQ(on_fake.sums, on_cpu.sums);
  EXPECT_EQ(on_cpu.with_totals, 10);
  EXPECT_LT(on_fake.with_totals, 10);
}

TEST_F(RunGuestTest, ARunFromAStateContinuesIt) {
  Recorder whole, first, second;
  ASSERT_TRUE(Run(&whole).ok());
  config_.max_steps = 3;
  ASSERT_TRUE(Run(&first).ok());
  config_.max_steps = 6;
  ASSERT_TRUE(Run(&second, first.end, /*drawn=*/3).ok());
  EXPECT_EQ(second.calls,
            "start 3 of 6\nstep 4: 4 examples\nstep 5: 4 examples\nstep 6: 2 examples\nend 6\n");
  EXPECT_EQ(Kernel(*second.end), Kernel(*whole.end));
  // If the run starts at another position in the data, the batches differ.
  Recorder elsewhere;
  ASSERT_TRUE(Run(&elsewhere, first.end, /*drawn=*/0).ok());
  EXPECT_NE(Kernel(*elsewhere.end), Kernel(*whole.end));
}

TEST_F(RunGuestTest, AStateOfAnotherModelIsRefused) {
  Recorder guest;
  ASSERT_TRUE(Run(&guest).ok());
  state::Snapshot other = *guest.end;
  other.variables[0].value = Tensor(DType::kFloat32, {3, 1});
  const Status run = Run(&guest, std::make_shared<const state::Snapshot>(other));
  EXPECT_TRUE(absl::IsInvalidArgument(run)) << run;
  EXPECT_NE(Message(run).find("dense/kernel"), std::string_view::npos) << run;
}

TEST_F(RunGuestTest, CanEndTheRunEarly) {
  Recorder guest;
  guest.on_step = [](Trainer& run) { return run.global_step() == 2 ? run.EndHere() : OkStatus(); };
  ASSERT_TRUE(Run(&guest).ok());
  EXPECT_EQ(guest.calls, "start 0 of 6\nstep 1: 4 examples\nstep 2: 4 examples\nend 2\n");
}

TEST_F(RunGuestTest, ItsErrorEndsTheRun) {
  Recorder guest;
  guest.on_step = [](Trainer&) { return Aborted("enough"); };
  const Status run = Run(&guest);
  EXPECT_TRUE(absl::IsAborted(run)) << run;
  EXPECT_EQ(guest.calls, "start 0 of 6\nstep 1: 4 examples\n");
}

TEST_F(RunGuestTest, LearnsOfAnErrorWhileTheVariablesAreStillThere) {
  class Keeper : public Recorder {
   public:
    void OnError(Trainer& run, const Status& why) override {
      calls += StrCat("error ", Message(why), " at ", run.global_step(), "\n");
      auto snapshot = run.strategy().TakeSnapshot();
      if (snapshot.ok()) end = std::make_shared<const state::Snapshot>(*std::move(snapshot));
    }
  };
  Keeper guest;
  guest.on_step = [](Trainer& run) { return run.global_step() == 2 ? Aborted("x") : OkStatus(); };
  EXPECT_FALSE(Run(&guest).ok());
  EXPECT_EQ(guest.calls, "start 0 of 6\nstep 1: 4 examples\nstep 2: 4 examples\nerror x at 2\n");
  ASSERT_NE(guest.end, nullptr);
  EXPECT_EQ(guest.end->global_step, 2);
}

TEST_F(RunGuestTest, LearnsTheStateAtWhichATaskStops) {
  Recorder guest;
  guest.on_step = [&](Trainer& run) {
    if (run.global_step() == 2) stop_.Request(SIGTERM);
    return OkStatus();
  };
  const Status run = Run(&guest);
  EXPECT_TRUE(absl::IsCancelled(run)) << run;
  EXPECT_EQ(guest.calls, "start 0 of 6\nstep 1: 4 examples\nstep 2: 4 examples\nend 2\n");
  EXPECT_EQ(guest.end->global_step, 2);
}

TEST_F(RunGuestTest, LearnsTheStateIfItsTaskIsAskedToStopWhileTheLastCheckpointIsWritten) {
  const std::string folder = StrCat(testing::TempDir(), "/run_guest_test_stop");
  std::filesystem::remove_all(folder);
  config_.model_dir = folder;
  config_.save_checkpoints_steps = 1000;
  config_.save_summary_steps = 0;
  Recorder guest;
  guest.on_step = [&](Trainer& run) {
    if (run.global_step() == 6) stop_.Request(SIGTERM);  // the run still waits for the checkpoint
    return OkStatus();
  };
  const Status run = Run(&guest);
  // The run returns OK if the checkpoint is complete before the run waits for it.
  EXPECT_TRUE(run.ok() || absl::IsCancelled(run)) << run;
  EXPECT_TRUE(guest.calls.ends_with("step 6: 2 examples\nend 6\n")) << guest.calls;
  ASSERT_NE(guest.end, nullptr);
  EXPECT_EQ(guest.end->global_step, 6);
}

TEST(ArraySource, ErrorsNameTheArray) {
  const auto layers = ParseJson(R"([{"Dense": {"units": 1}}])", "layers");
  const model::Model model = *model::ReadLayers(JsonField(*layers));
  const auto error = [&](std::map<std::string, Tensor> arrays) {
    return std::string(Message(ArraySource({}, Split::kEval, model, std::move(arrays)).status()));
  };
  EXPECT_EQ(error({}), "data.eval: expected arrays of examples, but there are none");
  EXPECT_EQ(error({{"x", Tensor(DType::kFloat32, {2, 1})}}),
            "data.eval: expected the array y, but the data have only x");
  EXPECT_EQ(error({{"x", Tensor(DType::kFloat32, {2, 1})}, {"y", Tensor(DType::kFloat32, {3, 1})}}),
            "data.eval: array x has 2 examples, but array y has 3; expected as many");
  EXPECT_EQ(error({{"x", Tensor::Scalar<float>(1)}, {"y", Tensor::Scalar<float>(1)}}),
            "data.eval: array x: expected an array whose first axis is that of the examples, got a "
            "single number");
}

}  // namespace
}  // namespace tfjob::train
