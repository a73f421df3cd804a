// Examples of callback.h.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "tests/api/examples/working_folder.h"
#include "tests/api/programs.h"

namespace {

using namespace tfjob;  // NOLINT: the examples of the reference omit the namespace

// Lets the examples read and write files by their names alone.
class CallbackExamples : public testing::Test {
 protected:
  const WorkingFolder folder_{"callback_examples"};
  CompiledModel trained_ = Compiled();
  const Dataset train_ = Points(100), test_ = Points(20);
};

TEST_F(CallbackExamples, Library) {
  CompiledModel& trained = trained_;
  const Dataset &train = train_, &test = test_;
  // [EarlyStopping, ModelCheckpoint, CSVLogger, TensorBoard]
  trained
      .Fit(train, {.epochs = 3,
                   .validation = &test,
                   .callbacks = {EarlyStopping{.patience = 3, .restore_best_weights = true},
                                 ModelCheckpoint{.path = "{epoch:03d}.safetensors"},
                                 CSVLogger{.file = "log.csv"}, TensorBoard{.log_dir = "logs"}}})
      .value();
  // [end]
  for (const char* file : {"003.safetensors", "log.csv", "logs/train", "logs/validation"})
    EXPECT_TRUE(std::filesystem::exists(file)) << file;
  // [ReduceLROnPlateau, TerminateOnNaN]
  trained
      .Fit(train,
           {.epochs = 3,
            .validation = &test,
            .callbacks = {ReduceLROnPlateau{.factor = 0.5, .patience = 2}, TerminateOnNaN{}}})
      .value();
  // [end]
  // [LearningRateScheduler]
  const LearningRateScheduler decay = {
      [](int64_t epoch, double rate) { return epoch < 2 ? rate : rate * std::exp(-0.1); }};
  trained.Fit(train, {.epochs = 3, .callbacks = {decay}}).value();
  // [end]
  EXPECT_EQ(trained.history().values.at("learning_rate").size(), 3U);
  // [BackupAndRestore]
  // If the program is stopped and started again, Fit continues from the newest checkpoint.
  trained.Fit(train, {.epochs = 3, .callbacks = {BackupAndRestore{.backup_dir = "backup"}}})
      .value();
  // [end]
  EXPECT_EQ(trained.history().epoch.size(), 3U);
}

TEST_F(CallbackExamples, Functions) {
  CompiledModel& trained = trained_;
  const Dataset &train = train_, &test = test_;
  int64_t step = 0;
  // [LambdaCallback, FitControl, FitControl::step, FitControl::epochs, FitControl::learning_rate]
  // [FitControl::is_chief, FitControl::validates]
  const LambdaCallback report = {
      .on_epoch_end = [&](FitControl& fit, int64_t epoch, const Metrics& metrics) -> Status {
        step = fit.step();
        if (!fit.is_chief()) return {};
        std::cout << "epoch " << epoch + 1 << " of " << fit.epochs() << ", rate "
                  << fit.learning_rate() << ", loss " << metrics["loss"];
        if (fit.validates()) std::cout << ", validation " << metrics["val_loss"];
        std::cout << std::endl;
        return {};
      }};
  trained.Fit(train, {.epochs = 2, .validation = &test, .callbacks = {report}}).value();
  // [end]
  EXPECT_EQ(step, 8);
  // [FitControl::Copy, FitControl::Save]
  const LambdaCallback evaluate = {
      .on_epoch_end = [&](FitControl& fit, int64_t, const Metrics&) -> Status {
        Result<CompiledModel> model = fit.Copy();  // the model with the current values
        if (!model.ok()) return model.status();
        const Result<Metrics> metrics = model->Evaluate(test);
        if (!metrics.ok()) return metrics.status();
        return (*metrics)["accuracy"] > 0.5 ? fit.Save("good.safetensors") : Status();
      }};
  trained.Fit(train, {.epochs = 20, .callbacks = {evaluate}}).value();
  // [end]
  EXPECT_TRUE(std::filesystem::exists("good.safetensors"));
}

// [CallbackHooks, CallbackHooks::OnTrainBegin, CallbackHooks::OnEpochBegin]
// [CallbackHooks::WantsBatches, CallbackHooks::OnBatchBegin, CallbackHooks::OnBatchEnd]
// [CallbackHooks::OnEpochEnd, CallbackHooks::OnTrainEnd, CallbackHooks::OnTrainAbort]
// Counts the calls.
class Counter : public CallbackHooks {
 public:
  Status OnTrainBegin(FitControl&) override { return Count("train"); }
  Status OnEpochBegin(FitControl&, int64_t) override { return Count("epoch"); }
  bool WantsBatches() const override { return true; }
  Status OnBatchBegin(FitControl&, int64_t) override { return Count("batch"); }
  Status OnBatchEnd(FitControl&, int64_t, const Metrics&) override { return {}; }
  Status OnEpochEnd(FitControl&, int64_t, const Metrics&) override { return {}; }
  Status OnTrainEnd(FitControl&) override { return Count("end"); }
  void OnTrainAbort() override { ++calls["abort"]; }  // in place of OnTrainEnd, after an error

  std::map<std::string, int> calls;

 private:
  Status Count(const std::string& name) {
    ++calls[name];
    return {};
  }
};
// [end]

TEST_F(CallbackExamples, Hooks) {
  CompiledModel& trained = trained_;
  const Dataset& train = train_;
  // [Callback, Callback::present, Callback::hooks]
  const auto counter = std::make_shared<Counter>();
  const Callback callback = counter;
  if (callback.present() && callback.hooks().WantsBatches()) std::cout << "counts batches\n";
  trained.Fit(train, {.epochs = 2, .callbacks = {callback}}).value();
  // [end]
  EXPECT_EQ(counter->calls,
            (std::map<std::string, int>{{"train", 1}, {"epoch", 2}, {"batch", 8}, {"end", 1}}));
}

// [FitControl::StopTraining, CallbackHooks::MayStopTraining]
// Stops after a number of steps.
class StopAfter : public CallbackHooks {
 public:
  explicit StopAfter(int64_t steps) : steps_(steps) {}
  bool WantsBatches() const override { return true; }
  bool MayStopTraining() const override { return true; }
  Status OnBatchEnd(FitControl& fit, int64_t, const Metrics&) override {
    return fit.step() >= steps_ ? fit.StopTraining() : Status();
  }

 private:
  int64_t steps_;
};
// [end]

// [FitControl::SetLearningRate, CallbackHooks::MaySetLearningRate]
// Halves the learning rate at the end of each epoch.
class Halve : public CallbackHooks {
 public:
  bool MaySetLearningRate() const override { return true; }
  Status OnEpochEnd(FitControl& fit, int64_t, const Metrics&) override {
    return fit.SetLearningRate(fit.learning_rate() / 2);
  }
};
// [end]

// [FitControl::Values, FitControl::EndWith, FitControl::LargerIsBetter]
// Ends with the values of the epoch in which the metric was best.
class KeepBest : public CallbackHooks {
 public:
  explicit KeepBest(std::string metric) : metric_(std::move(metric)) {}
  Status OnEpochEnd(FitControl& fit, int64_t, const Metrics& metrics) override {
    const double sign = fit.LargerIsBetter(metric_).value_or(false) ? 1 : -1;
    const double value = sign * metrics[metric_];
    if (best_ && value <= *best_) return {};
    best_ = value;
    auto values = fit.Values();
    if (!values.ok()) return values.status();
    fit.EndWith(*values);
    return {};
  }

 private:
  std::string metric_;
  std::optional<double> best_;
};
// [end]

// [CallbackHooks::SaveState, CallbackHooks::RestoreState]
// Counts epochs, also across restarts.
class CountEpochs : public CallbackHooks {
 public:
  Status OnEpochEnd(FitControl&, int64_t, const Metrics&) override {
    ++epochs;
    return {};
  }
  std::string SaveState() const override { return std::to_string(epochs); }
  Status RestoreState(const std::string& state) override {
    epochs = std::atoi(state.c_str());
    return {};
  }

  int epochs = 0;
};
// [end]

TEST_F(CallbackExamples, States) {
  const auto first = std::make_shared<CountEpochs>(), second = std::make_shared<CountEpochs>();
  FitOptions options = Quietly(3);
  const BackupAndRestore backup = {.backup_dir = "states", .delete_checkpoint = false};
  options.callbacks = {backup, first};
  CompiledModel again = Compiled();
  ASSERT_TRUE(trained_.Fit(train_, options).ok());
  EXPECT_EQ(first->epochs, 3);
  options.epochs = 4;
  options.callbacks = {backup, second};
  ASSERT_TRUE(again.Fit(train_, options).ok());
  EXPECT_EQ(second->epochs, 4);
}

TEST_F(CallbackExamples, Control) {
  FitOptions options = Quietly(3);
  options.callbacks = {std::make_shared<StopAfter>(6), std::make_shared<Halve>(),
                       std::make_shared<KeepBest>("accuracy")};
  const History history = trained_.Fit(train_, options).value();
  EXPECT_TRUE(history.stopped);
  EXPECT_NEAR(history.values.at("learning_rate").back(), 0.01, 1e-9);
}

}  // namespace
