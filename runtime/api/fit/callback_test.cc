#include <gtest/gtest.h>
#include <signal.h>
#include <tfjob/tfjob.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tj = tfjob;

namespace {

std::string Temp(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

std::string Read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns examples of y = 2x, without noise.
tj::Dataset Line(int64_t examples = 32) {
  tj::Tensor x(tj::DType::kFloat32, {examples, 1}), y(tj::DType::kFloat32, {examples, 1});
  for (size_t i = 0; i < static_cast<size_t>(examples); ++i) {
    x.float32()[i] = static_cast<float>(i) / 16 - 1;
    y.float32()[i] = 2 * x.float32()[i];
  }
  return tj::data::Arrays{.x = x, .y = y};
}

tj::CompiledModel Model(double learning_rate = 0.1) {
  return tj::Session(tj::Strategy::OneDevice(), {.threads = 1})
      .Compile(tj::Sequential({tj::Input{.shape = {1}}, tj::Dense{.units = 1}}),
               {.optimizer = tj::SGD{.learning_rate = learning_rate}, .loss = "mean_squared_error"})
      .value();
}

std::vector<float> WeightsOf(const tj::CompiledModel& model) {
  std::vector<float> all;
  for (const auto& [name, tensor] : model.Weights().value())
    all.insert(all.end(), tensor.float32().begin(), tensor.float32().end());
  return all;
}

tj::FitOptions With(std::vector<tj::Callback> callbacks, int64_t epochs = 10) {
  return {.batch_size = 8,
          .epochs = epochs,
          .callbacks = std::move(callbacks),
          .verbose = tj::Verbose::kSilent};
}

TEST(LambdaCallback, IsCalledInOrder) {
  std::string calls;
  const tj::LambdaCallback callback = {
      .on_train_begin =
          [&](tj::FitControl& run) {
            calls += "begin " + std::to_string(run.step()) + " of " + std::to_string(run.epochs()) +
                     "\n";
            return tj::Status();
          },
      .on_epoch_begin =
          [&](tj::FitControl&, int64_t epoch) {
            calls += "epoch " + std::to_string(epoch) + "\n";
            return tj::Status();
          },
      .on_batch_end =
          [&](tj::FitControl& run, int64_t batch, const tj::Metrics& metrics) {
            calls += "batch " + std::to_string(batch) + " step " + std::to_string(run.step()) +
                     (metrics.has("loss") ? "\n" : " without loss\n");
            return tj::Status();
          },
      .on_epoch_end =
          [&](tj::FitControl&, int64_t epoch, const tj::Metrics&) {
            calls += "end " + std::to_string(epoch) + "\n";
            return tj::Status();
          },
      .on_train_end =
          [&](tj::FitControl&) {
            calls += "done\n";
            return tj::Status();
          }};
  ASSERT_TRUE(Model().Fit(Line(16), With({callback}, 2)).ok());
  EXPECT_EQ(calls,
            "begin 0 of 2\nepoch 0\nbatch 0 step 1\nbatch 1 step 2\nend 0\n"
            "epoch 1\nbatch 0 step 3\nbatch 1 step 4\nend 1\ndone\n");
}

TEST(LambdaCallback, ItsErrorEndsFitAfterTheStep) {
  const tj::LambdaCallback callback = {
      .on_batch_end = [](tj::FitControl& run, int64_t, const tj::Metrics&) {
        return run.step() == 5 ? tj::Status(tj::StatusCode::kAborted, "enough") : tj::Status();
      }};
  tj::CompiledModel model = Model();
  const auto history = model.Fit(Line(), With({callback}));
  EXPECT_EQ(history.status().message(), "enough");
  EXPECT_EQ(history.status().code(), tj::StatusCode::kAborted);
  EXPECT_EQ(model.step(), 5);
}

TEST(StopTraining, EndsTheEpochThatHasBegun) {
  const tj::LambdaCallback callback = {
      .on_batch_end = [](tj::FitControl& run, int64_t, const tj::Metrics&) {
        return run.step() == 6 ? run.StopTraining() : tj::Status();
      }};
  tj::CompiledModel model = Model();
  const tj::History history = model.Fit(Line(), With({callback})).value();
  EXPECT_TRUE(history.stopped);
  EXPECT_EQ(history.epoch, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(model.step(), 6);
}

TEST(LambdaCallback, ItsErrorIsNotOneOfTheRun) {
  // The runtime itself returns OutOfRange for numbers that are not finite, and records such
  // failures in the folder. An error of a callback with the same code must not be recorded.
  const std::string folder = Temp("failed");
  const tj::LambdaCallback callback = {
      .on_batch_end = [](tj::FitControl& run, int64_t, const tj::Metrics&) {
        return run.step() == 5 ? tj::Status(tj::StatusCode::kOutOfRange, "index 7") : tj::Status();
      }};
  const tj::BackupAndRestore backup = {.backup_dir = folder};
  tj::CompiledModel model = Model();
  const auto history = model.Fit(Line(), With({callback, backup}));
  EXPECT_EQ(history.status().code(), tj::StatusCode::kOutOfRange);
  EXPECT_EQ(history.status().message(), "index 7");
  EXPECT_EQ(model.step(), 5);
  EXPECT_EQ(model.history().epoch, (std::vector<int64_t>{0}));
  EXPECT_FALSE(std::filesystem::exists(folder + "/fit-backup/finished.json"));
}

TEST(OnTrainAbort, IsCalledIfFitEndsWithAnError) {
  struct Aborted : tj::CallbackHooks {
    tj::Status OnEpochEnd(tj::FitControl&, int64_t epoch, const tj::Metrics&) override {
      return epoch == 1 ? tj::Status(tj::StatusCode::kAborted, "enough") : tj::Status();
    }
    tj::Status OnTrainEnd(tj::FitControl&) override {
      ++ends;
      return {};
    }
    void OnTrainAbort() override { ++aborts; }
    int ends = 0, aborts = 0;
  };
  const auto callback = std::make_shared<Aborted>();
  EXPECT_FALSE(Model().Fit(Line(), With({callback})).ok());
  EXPECT_EQ(callback->aborts, 1);
  EXPECT_EQ(callback->ends, 0);
  ASSERT_TRUE(Model().Fit(Line(), With({callback}, 1)).ok());
  EXPECT_EQ(callback->aborts, 1);
  EXPECT_EQ(callback->ends, 1);
}

TEST(LargerIsBetter, FollowsFromTheMetricAndNotFromItsName) {
  const tj::Symbol x = tj::Input{.shape = {1}};
  const tj::Model model = tj::Functional(
      x, {tj::Dense{.units = 1, .name = "acceleration"}(x), tj::Dense{.units = 1, .name = "b"}(x)});
  tj::CompiledModel compiled =
      tj::Session(tj::Strategy::OneDevice(), {.threads = 1})
          .Compile(model, {.optimizer = tj::SGD{.learning_rate = 4},  // the losses grow
                           .loss = "mean_squared_error",
                           .metrics = {"mean_absolute_error",
                                       {"auc", {{"as", "area"}}},
                                       "r2_score",
                                       "cosine_similarity"}})
          .value();
  std::map<std::string, std::optional<bool>> larger;
  const tj::LambdaCallback note = {.on_train_begin = [&](tj::FitControl& run) {
    for (const char* name :
         {"loss", "val_loss", "acceleration_loss", "val_acceleration_mean_absolute_error", "b_area",
          "b_r2_score", "b_cosine_similarity", "accuracy"})
      larger[name] = run.LargerIsBetter(name);
    return tj::Status();
  }};
  tj::Tensor zeros(tj::DType::kFloat32, {32, 1}), ones(tj::DType::kFloat32, {32, 1});
  for (float& one : ones.float32()) one = 1;
  const tj::data::Arrays arrays = {.x = ones, .targets = {{"acceleration", ones}, {"b", zeros}}};
  const tj::EarlyStopping stopping = {.monitor = "acceleration_loss", .patience = 1};
  const auto history = compiled.Fit(arrays, With({note, stopping}, 5));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_TRUE(history->stopped) << "larger losses are not better";
  EXPECT_EQ(larger, (std::map<std::string, std::optional<bool>>{
                        {"loss", false},
                        {"val_loss", false},
                        {"acceleration_loss", false},
                        {"val_acceleration_mean_absolute_error", false},
                        {"b_area", true},
                        {"b_r2_score", true},
                        {"b_cosine_similarity", true},
                        {"accuracy", std::nullopt}}));
}

class Counter : public tj::CallbackHooks {
 public:
  tj::Status OnEpochEnd(tj::FitControl&, int64_t, const tj::Metrics&) override {
    ++epochs;
    return {};
  }
  int epochs = 0;
};

TEST(CallbackHooks, CanBeAClassOfTheProgram) {
  const auto counter = std::make_shared<Counter>();
  ASSERT_TRUE(Model().Fit(Line(), With({counter}, 3)).ok());
  EXPECT_EQ(counter->epochs, 3);
}

TEST(EarlyStopping, EndsOnceTheMetricNoLongerImproves) {
  // At this high learning rate, the loss grows from epoch to epoch.
  tj::CompiledModel model = Model(/*learning_rate=*/4);
  std::vector<std::vector<float>> after;
  const tj::LambdaCallback record = {
      .on_epoch_end = [&](tj::FitControl& run, int64_t, const tj::Metrics&) {
        after.push_back({static_cast<float>(run.step())});
        return tj::Status();
      }};
  const tj::EarlyStopping stopping = {
      .monitor = "loss", .patience = 2, .restore_best_weights = true};
  const tj::History history = model.Fit(Line(), With({record, stopping})).value();
  EXPECT_TRUE(history.stopped);
  EXPECT_EQ(history.epoch.size(), 3U) << "the best epoch, and two more";
  EXPECT_EQ(model.step(), 4) << "the state of the best epoch is restored";

  tj::CompiledModel once = Model(4);
  ASSERT_TRUE(once.Fit(Line(), With({}, 1)).ok());
  EXPECT_EQ(WeightsOf(model), WeightsOf(once));
}

TEST(EarlyStopping, DoesNothingWhileTheMetricImproves) {
  const tj::EarlyStopping stopping = {.monitor = "loss", .patience = 1};
  EXPECT_FALSE(Model().Fit(Line(), With({stopping})).value().stopped);
}

TEST(EarlyStopping, NeedsItsMetric) {
  EXPECT_EQ(
      Model().Fit(Line(), With({tj::EarlyStopping{}})).status().message(),
      "monitor: there is no metric val_loss; expected one of loss; set FitOptions::validation (if "
      "the job has an evaluator, only the evaluator validates)");
  EXPECT_EQ(Model()
                .Fit(Line(), With({tj::EarlyStopping{.monitor = "loss", .mode = "most"}}))
                .status()
                .message(),
            "mode: expected one of auto, min, max, got \"most\"");
  // Epochs without a validation do not count towards the patience.
  const tj::Dataset validation = Line(8);
  tj::FitOptions options = With({tj::EarlyStopping{}}, 4);
  options.validation = &validation;
  options.validation_freq = 2;
  const auto history = Model().Fit(Line(), options);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->values.at("val_loss").size(), 2U);
}

TEST(ModelCheckpoint, NamesFilesByEpochAndMetric) {
  const std::string folder = Temp("saved");  // the callback creates it
  tj::CompiledModel model = Model();
  ASSERT_TRUE(
      model.Fit(Line(), With({tj::ModelCheckpoint{.path = folder + "/{epoch:02d}.safetensors"}}, 2))
          .ok());
  EXPECT_TRUE(std::filesystem::exists(folder + "/01.safetensors"));
  tj::CompiledModel read = Model();
  ASSERT_TRUE(read.LoadWeights(folder + "/02.safetensors").ok());
  EXPECT_EQ(WeightsOf(read), WeightsOf(model));
  EXPECT_EQ(
      Model().Fit(Line(), With({tj::ModelCheckpoint{.path = "{los}.keras"}})).status().message(),
      "path: {los}: there is no metric los");
  EXPECT_EQ(
      Model().Fit(Line(), With({tj::ModelCheckpoint{.path = "{loss:n}.keras"}})).status().message(),
      "path: the format \"n\" is not supported; use one such as 02d, .3f, .2e or g");
}

TEST(ModelCheckpoint, ChecksItsPathBeforeTheFirstStep) {
  const auto error = [](const std::string& path) {
    tj::CompiledModel model = Model();
    const auto history = model.Fit(Line(), With({tj::ModelCheckpoint{.path = path}}));
    EXPECT_EQ(model.step(), 0) << path;
    return history.status().message();
  };
  EXPECT_EQ(error("best"),
            "ModelCheckpoint: path: expected a name that ends in one of .keras, .weights.h5, .h5, "
            ".safetensors, got \"best\"");
  for (const char* format : {"1.2.3f", "n", ".f", "123456d", "d%"}) {
    EXPECT_EQ(error(std::string("{loss:") + format + "}.keras"),
              std::string("path: the format \"") + format +
                  "\" is not supported; use one such as 02d, .3f, .2e or g");
  }
}

TEST(ModelCheckpoint, RemembersTheBestValueBetweenCallsOfFit) {
  const std::string path = Temp("kept.safetensors");
  const tj::Callback callback =
      tj::ModelCheckpoint{.path = path, .monitor = "loss", .save_best_only = true};
  tj::CompiledModel model = Model(4);  // the loss grows
  ASSERT_TRUE(model.Fit(Line(), With({callback}, 1)).ok());
  const std::string best = Read(path);
  ASSERT_TRUE(model.Fit(Line(), With({callback}, 1)).ok());
  EXPECT_EQ(Read(path), best);
}

TEST(ModelCheckpoint, CanKeepOnlyTheBest) {
  const std::string path = Temp("best.keras");
  tj::CompiledModel model = Model(4);  // the loss grows
  ASSERT_TRUE(model
                  .Fit(Line(), With({tj::ModelCheckpoint{
                                        .path = path, .monitor = "loss", .save_best_only = true}},
                                    3))
                  .ok());
  tj::CompiledModel best = tj::Session(tj::Strategy::OneDevice()).Load(path).value();
  EXPECT_EQ(best.step(), 4);
}

TEST(CSVLogger, WritesALinePerEpoch) {
  const std::string path = Temp("log.csv");
  const tj::Dataset validation = Line(8);
  tj::FitOptions options = With({tj::CSVLogger{.file = path}}, 2);
  options.validation = &validation;
  options.validation_freq = 2;
  tj::CompiledModel model = Model();
  const tj::History history = model.Fit(Line(), options).value();
  const std::string text = Read(path);
  EXPECT_EQ(text.substr(0, text.find('\n')), "epoch,loss,val_loss");
  EXPECT_NE(text.find("\n0,"), std::string::npos) << text;
  EXPECT_NE(text.find(",NA\n1,"), std::string::npos) << text;
  options.callbacks = {tj::CSVLogger{.file = path, .append = true}};
  options.initial_epoch = 2;
  options.epochs = 3;
  ASSERT_TRUE(model.Fit(Line(), options).ok());
  const std::string longer = Read(path);
  EXPECT_EQ(longer.substr(0, text.size()), text);
  EXPECT_NE(longer.find("\n2,"), std::string::npos) << longer;
  EXPECT_EQ(longer.find("epoch", 5), std::string::npos) << "one header";
  EXPECT_EQ(
      Model().Fit(Line(), With({tj::CSVLogger{.file = "/no/such/folder.csv"}})).status().code(),
      tj::StatusCode::kNotFound);
}

TEST(TensorBoard, WritesEventsOfTrainingAndValidation) {
  const std::string folder = Temp("board");
  const tj::Dataset validation = Line(8);
  tj::FitOptions options = With({tj::TensorBoard{folder}}, 2);
  options.validation = &validation;
  ASSERT_TRUE(Model().Fit(Line(), options).ok());
  for (const char* part : {"/train", "/validation"}) {
    std::string events;
    for (const auto& entry : std::filesystem::directory_iterator(folder + part))
      events += Read(entry.path());
    EXPECT_NE(events.find("epoch_loss"), std::string::npos) << part;
    EXPECT_EQ(events.find("val_"), std::string::npos) << part;
  }
}

TEST(BackupAndRestore, ContinuesWhereTheProgramWasAskedToStop) {
  const std::string folder = Temp("backup");
  tj::CompiledModel whole = Model();
  ASSERT_TRUE(whole.Fit(Line(), With({}, 6)).ok());

  const tj::BackupAndRestore backup = {.backup_dir = folder};
  const tj::LambdaCallback ask = {
      .on_batch_end = [](tj::FitControl& run, int64_t, const tj::Metrics&) {
        if (run.step() == 14) raise(SIGTERM);
        return tj::Status();
      }};
  // Train in a child process, which exits with the code for the signal.
  EXPECT_EXIT(Model().Fit(Line(), With({backup, ask}, 6)).value(),
              testing::ExitedWithCode(128 + SIGTERM), "");
  EXPECT_TRUE(std::filesystem::exists(folder + "/fit-backup/checkpoint"));

  int64_t first_step = 0;
  const tj::LambdaCallback note = {.on_train_begin = [&](tj::FitControl& run) {
    first_step = run.step();
    return tj::Status();
  }};
  tj::CompiledModel again = Model();
  const auto history = again.Fit(Line(), With({backup, note}, 6));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(first_step, 14);
  EXPECT_EQ(history->epoch, (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(again.step(), 24);
  EXPECT_EQ(WeightsOf(again), WeightsOf(whole));
  EXPECT_FALSE(std::filesystem::exists(folder + "/fit-backup/checkpoint"))
      << "the backup is deleted";

  // A later Fit may use the same folder.
  tj::FitOptions more = With({backup}, 7);
  more.initial_epoch = 6;
  ASSERT_TRUE(again.Fit(Line(), more).ok());
  EXPECT_EQ(again.step(), 28);
}

TEST(BackupAndRestore, LeavesOtherCheckpointsOfItsFolderAlone) {
  const std::string folder = Temp("shared");
  tj::CompiledModel model = Model();
  ASSERT_TRUE(model.Fit(Line(), With({}, 5)).ok());
  ASSERT_TRUE(model.SaveCheckpoint(folder).ok());
  tj::CompiledModel other = Model();
  const auto history = other.Fit(Line(), With({tj::BackupAndRestore{.backup_dir = folder}}, 2));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->epoch, (std::vector<int64_t>{0, 1})) << "restored nothing";
  tj::CompiledModel read = Model();
  ASSERT_TRUE(read.LoadCheckpoint(folder).ok());
  EXPECT_EQ(WeightsOf(read), WeightsOf(model));
}

TEST(BackupAndRestore, KeepsItsCheckpointIfTheLastValidationIsCutShort) {
  const std::string folder = Temp("cut");
  const tj::Dataset validation = Line(8);
  const tj::LambdaCallback ask = {
      .on_batch_end = [](tj::FitControl& run, int64_t, const tj::Metrics&) {
        if (run.step() == 4) raise(SIGTERM);  // the last step of the epoch
        return tj::Status();
      }};
  for (const int64_t epochs : {1, 2}) {
    std::filesystem::remove_all(folder);
    tj::FitOptions options = With({tj::BackupAndRestore{.backup_dir = folder}, ask}, epochs);
    options.validation = &validation;
    EXPECT_EQ(Model().Fit(Line(), options).status().code(), tj::StatusCode::kCancelled);
    int64_t first_step = 0;
    options.callbacks = {tj::BackupAndRestore{.backup_dir = folder},
                         tj::LambdaCallback{.on_train_begin = [&](tj::FitControl& run) {
                           first_step = run.step();
                           return tj::Status();
                         }}};
    tj::CompiledModel again = Model();
    const auto history = again.Fit(Line(), options);
    ASSERT_TRUE(history.ok()) << history.status();
    EXPECT_EQ(first_step, 4) << epochs;
    EXPECT_EQ(again.step(), 4 * epochs);
  }
}

TEST(BackupAndRestore, KeepsTheModelIfTheProcessIsAskedToStopAtTheLastStep) {
  class Ask : public tj::CallbackHooks {
   public:
    bool WantsBatches() const override { return true; }
    tj::Status OnBatchEnd(tj::FitControl& run, int64_t, const tj::Metrics&) override {
      if (run.step() == 8) raise(SIGTERM);  // Fit still waits for the last checkpoint
      return {};
    }
    tj::Status OnTrainEnd(tj::FitControl&) override {
      calls += "end";
      return {};
    }
    void OnTrainAbort() override { calls += "abort"; }
    std::string calls;
  };
  const auto ask = std::make_shared<Ask>();
  const tj::BackupAndRestore backup = {.backup_dir = Temp("last")};
  tj::CompiledModel model = Model(), whole = Model();
  const auto history = model.Fit(Line(), With({backup, ask}, 2));
  EXPECT_EQ(ask->calls, history.ok() ? "end" : "abort");
  EXPECT_EQ(model.step(), 8);
  ASSERT_TRUE(whole.Fit(Line(), With({}, 2)).ok());
  EXPECT_EQ(WeightsOf(model), WeightsOf(whole));
}

TEST(BackupAndRestore, RefusesACheckpointOfAnEarlierFit) {
  const std::string folder = Temp("kept");
  const tj::BackupAndRestore backup = {.backup_dir = folder, .delete_checkpoint = false};
  ASSERT_TRUE(Model().Fit(Line(), With({backup}, 1)).ok());
  tj::CompiledModel other = Model();
  ASSERT_TRUE(other.Fit(Line(), With({}, 3)).ok());
  const auto history = other.Fit(Line(), With({backup}, 4));
  EXPECT_EQ(history.status().code(), tj::StatusCode::kFailedPrecondition) << history.status();
  EXPECT_EQ(Model().Fit(Line(), With({tj::BackupAndRestore{}})).status().message(),
            "BackupAndRestore: backup_dir: expected a folder, got \"\"");
}

TEST(TerminateOnNaN, EndsFitAfterTheBatchWithoutAnError) {
  tj::CompiledModel model = Model(1e30);
  const auto history = model.Fit(Line(), With({tj::TerminateOnNaN{}}));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_TRUE(history->stopped);
  EXPECT_EQ(history->epoch, (std::vector<int64_t>{0}));
  EXPECT_LT(model.step(), 4);
}

TEST(Fit, KeepsTheLastEpochIfNumbersAreNotFinite) {
  tj::CompiledModel model = Model(4);  // diverges
  const auto history = model.Fit(Line(), With({}, 1000));
  EXPECT_EQ(history.status().code(), tj::StatusCode::kOutOfRange) << history.status();
  const auto epochs = static_cast<int64_t>(model.history().epoch.size());
  EXPECT_GT(epochs, 0);
  EXPECT_EQ(model.step(), 4 * epochs);
  for (const float weight : WeightsOf(model)) EXPECT_TRUE(std::isfinite(weight));
}

}  // namespace
