// Tests that callbacks continue from their states when Fit continues from a BackupAndRestore.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/api/fit/callback_states.h"
#include "runtime/api/layers.h"
#include "runtime/api/losses.h"
#include "runtime/api/optimizers.h"
#include "runtime/api/session.h"

namespace tj = tfjob::api;

namespace {

constexpr int64_t kStepsPerEpoch = 4;

std::string Folder(const std::string& name) {
  const std::string path = testing::TempDir() + "/states_" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

// y = 2x
tj::Dataset Line() {
  tj::Tensor x(tj::DType::kFloat32, {16, 1}), y(tj::DType::kFloat32, {16, 1});
  for (size_t i = 0; i < 16; ++i) {
    x.float32()[i] = static_cast<float>(i) / 16;
    y.float32()[i] = 2 * x.float32()[i];
  }
  return tj::data::Arrays{.x = x, .y = y};
}

tj::CompiledModel Model() {
  return tj::Session(tj::Strategy::OneDevice(), {.seed = 3, .threads = 1})
      .Compile(tj::Sequential({tj::Dense{.units = 1}}),
               {.optimizer = tj::SGD{.learning_rate = 0.01}, .loss = "mean_squared_error"})
      .value();
}

tj::FitOptions Options(std::vector<tj::Callback> callbacks) {
  return {.batch_size = 4,
          .epochs = 10,
          .callbacks = std::move(callbacks),
          .verbose = tj::Verbose::kSilent};
}

tj::Callback AskToStopAt(int64_t step) {
  return tj::LambdaCallback{
      .on_batch_end = [step](tj::FitControl& run, int64_t, const tj::Metrics&) {
        if (run.step() == step) raise(SIGTERM);
        return tj::Status();
      }};
}

// Trains with the callback until it is interrupted in the fourth epoch, and then continues as a
// process that starts again.
tj::CompiledModel TrainInterrupted(const std::string& folder, const auto& callback) {
  const tj::BackupAndRestore backup = {.backup_dir = folder};
  EXPECT_EQ(Model()
                .Fit(Line(), Options({backup, callback, AskToStopAt(3 * kStepsPerEpoch + 2)}))
                .status()
                .code(),
            tj::StatusCode::kCancelled);
  tj::CompiledModel again = Model();
  const auto history = again.Fit(Line(), Options({backup, callback, AskToStopAt(-1)}));
  EXPECT_TRUE(history.ok()) << history.status();
  return again;
}

std::vector<float> Values(const tj::CompiledModel& model) {
  std::vector<float> values;
  for (auto& [name, value] : model.Weights().value())
    values.insert(values.end(), value.float32().begin(), value.float32().end());
  return values;
}

TEST(CallbackState, EarlyStoppingGoesOnCounting) {
  const tj::EarlyStopping patient = {.monitor = "loss", .min_delta = 1000, .patience = 5};
  tj::CompiledModel whole = Model();
  ASSERT_TRUE(whole.Fit(Line(), Options({patient})).ok());
  ASSERT_EQ(whole.step(), 6 * kStepsPerEpoch);
  EXPECT_EQ(TrainInterrupted(Folder("stopping"), patient).step(), whole.step());
}

TEST(CallbackState, ReduceLROnPlateauGoesOnCounting) {
  const tj::ReduceLROnPlateau plateau = {
      .monitor = "loss", .factor = 0.5, .patience = 2, .min_delta = 1000};
  tj::CompiledModel whole = Model();
  ASSERT_TRUE(whole.Fit(Line(), Options({plateau})).ok());
  EXPECT_EQ(Values(TrainInterrupted(Folder("plateau"), plateau)), Values(whole));
}

TEST(CallbackState, ModelCheckpointKnowsTheBestValue) {
  const std::string saved = Folder("saved");
  TrainInterrupted(Folder("checkpoint"), tj::ModelCheckpoint{.path = saved + "/{epoch}.safetensors",
                                                             .monitor = "loss",
                                                             .save_best_only = true,
                                                             .mode = "max"});
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(saved))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"1.safetensors"})) << "the loss only falls";
}

// A callback of a program.
class Counter : public tj::CallbackHooks {
 public:
  tj::Status OnTrainBegin(tj::FitControl&) override {
    text = "new";
    return {};
  }
  tj::Status OnEpochEnd(tj::FitControl&, int64_t epoch, const tj::Metrics&) override {
    text = std::string("\xff\0", 2) + std::to_string(epoch);
    return {};
  }
  std::string SaveState() const override { return text; }
  tj::Status RestoreState(const std::string& state) override {
    restored = state;
    return refuses ? tj::Status(tj::StatusCode::kDataLoss, "not mine") : tj::Status();
  }
  std::string text, restored;
  bool refuses = false;
};

TEST(CallbackState, AProgramsOwnTextIsKept) {
  const std::string folder = Folder("own");
  const tj::BackupAndRestore backup = {.backup_dir = folder};
  const auto counter = std::make_shared<Counter>();
  const auto fit = [&](std::vector<tj::Callback> more) {
    std::vector<tj::Callback> callbacks = {backup, counter};
    callbacks.insert(callbacks.end(), more.begin(), more.end());
    return Model().Fit(Line(), Options(std::move(callbacks))).status();
  };
  ASSERT_EQ(fit({AskToStopAt(6)}).code(), tj::StatusCode::kCancelled);
  EXPECT_EQ(counter->restored, "") << "nothing to continue from";
  ASSERT_EQ(fit({AskToStopAt(10)}).code(), tj::StatusCode::kCancelled);
  EXPECT_EQ(counter->restored, std::string("\xff\0"
                                           "0",
                                           3));
  counter->refuses = true;
  EXPECT_EQ(fit({AskToStopAt(11)}).message(), "not mine");
  EXPECT_EQ(counter->restored, std::string("\xff\0"
                                           "1",
                                           3));
  counter->restored = "";
  EXPECT_TRUE(fit({}).ok());
  EXPECT_EQ(counter->restored, "") << "the states of three callbacks are not those of two";
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/fit-backup")) << "the backup is deleted";
}

TEST(CallbackState, KeepsTheStatesOfTheNewestCheckpoints) {
  const std::string folder = Folder("files");
  const auto counter = std::make_shared<Counter>();
  const auto write = [&](int64_t step) {
    counter->text = std::to_string(step);
    ASSERT_TRUE(tj::WriteCallbackStates(folder, step, {counter}).ok());
  };
  const auto read = [&](int64_t step) {
    counter->restored = "";
    EXPECT_TRUE(tj::RestoreCallbackStates(folder, step, {counter}).ok());
    return counter->restored;
  };
  EXPECT_EQ(read(3), "") << "no file";
  for (const int64_t step : {10, 20, 30, 40, 50, 60}) write(step);
  EXPECT_EQ(read(60), "60");
  EXPECT_EQ(read(59), "50") << "a state that was received from the group";
  EXPECT_EQ(read(30), "30");
  EXPECT_EQ(read(29), "") << "older checkpoints are deleted";
  write(35);
  EXPECT_EQ(read(60), "35") << "the run has gone back to an earlier step";
  std::ofstream(folder + "/callbacks-35.json") << "{\"states\":[\"?\"]}";
  EXPECT_FALSE(tj::RestoreCallbackStates(folder, 35, {counter}).ok());
}

}  // namespace
