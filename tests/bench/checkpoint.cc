// Implements the benchmark case checkpoint. Measures the rate at which a checkpoint is saved,
// compared with that of dd; the time to restore a checkpoint; and the number of samples that a task
// trains on while a thread saves its state, compared with the same period without a save.
#include "runtime/train/model_dir/checkpoint.h"

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/thread_pool.h"
#include "runtime/data/pipeline.h"
#include "runtime/model/layers/dense.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/tensor/window.h"
#include "runtime/train/model_dir/checkpoint_saver.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

constexpr int64_t kFeatures = 784;

struct Options {
  int64_t bytes = int64_t{1} << 30;  // size of the state
  int64_t batch = 32;
  int rounds = 3;
  std::string folder = "/tmp";
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns a network with two hidden layers, whose variables have a total size of about `bytes`
// bytes.
strategy::ModelDefinition Define(const Options& options) {
  const double floats = static_cast<double>(options.bytes) / sizeof(float);
  const auto units = static_cast<int64_t>(
      (-double{kFeatures} + std::sqrt(double{kFeatures} * kFeatures + 4 * floats)) / 2);
  strategy::ModelDefinition definition;
  const model::layers::Dense hidden{.units = std::max<int64_t>(units, 1),
                                    .activation = model::ActivationKind::kRelu};
  definition.model =
      model::Sequential("mlp", {{.name = "dense", .config = hidden},
                                {.name = "dense_1", .config = hidden},
                                {.name = "dense_2", .config = model::layers::Dense{.units = 1}}});
  definition.build.batch_size = options.batch;
  definition.build.features = model::Features({kFeatures});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::ParseKind("sgd").value());
  definition.state.optimizer.learning_rate = 1e-6;
  return definition;
}

int64_t BytesOf(const state::Snapshot& snapshot) {
  int64_t bytes = 0;
  for (const state::VariableState& variable : snapshot.variables)
    bytes += static_cast<int64_t>(variable.value.num_bytes());
  return bytes;
}

// Writes `bytes` bytes to the folder with dd. Returns the rate in MB/s.
StatusOr<double> RateOfDd(const std::string& folder, int64_t bytes) {
  const int64_t blocks = (bytes + (1 << 20) - 1) >> 20;
  const std::string file = folder + "/dd";
  const double start = Now();
  const std::string command =
      StrCat("dd if=/dev/zero of='", file, "' bs=1M count=", blocks, " conv=fsync 2>/dev/null");
  if (std::system(command.c_str()) != 0) return Internal("dd failed in ", folder);
  const double seconds = Now() - start;
  std::filesystem::remove(file);
  return static_cast<double>(blocks << 20) / seconds / 1e6;
}

// Returns a task whose variables do not have values yet. The memory is fresh, as for a task that
// has just started.
StatusOr<std::unique_ptr<strategy::Strategy>> NewTask(
    const strategy::ModelDefinition& definition,
    std::function<StatusOr<state::Snapshot>(const state::Snapshot*)> provide_state) {
  return strategy::MakeOneDevice({.task_type = "chief", .incarnation = 1},
                                 {.definition = definition,
                                  .device = exec::CpuDevice(),
                                  .provide_state = std::move(provide_state)});
}

// Returns the time that a new task takes to load the state from the newest checkpoint.
StatusOr<Times> Restore(const std::string& folder, const strategy::ModelDefinition& definition,
                        ThreadPool* pool) {
  const auto load = [&](const state::Snapshot* into) -> StatusOr<state::Snapshot> {
    ASSIGN_OR_RETURN(auto loaded, train::LoadLatestCheckpoint(folder, definition.state,
                                                              {.into = into, .pool = pool}));
    return *std::move(loaded);
  };
  ASSIGN_OR_RETURN(const auto task, NewTask(definition, load));
  Stopwatch watch;
  RETURN_IF_ERROR(task->Start().status());
  return watch.Elapsed();
}

// Alternates between saving a state and writing the same number of bytes with dd. Restores the
// state after each save.
Status SaveAndRestore(const Options& options, const std::string& folder,
                      const strategy::ModelDefinition& definition, state::Snapshot snapshot) {
  const auto bytes = static_cast<double>(BytesOf(snapshot));
  ThreadPool pool("bench", 1);
  std::vector<double> save, dd, ratio, restore, restore_cpu;
  Stopwatch watch;
  for (int round = 0; round < options.rounds; ++round) {
    ASSIGN_OR_RETURN(const double other, RateOfDd(folder, static_cast<int64_t>(bytes)));
    snapshot.global_step = round + 1;
    const double start = Now();
    RETURN_IF_ERROR(
        train::SaveCheckpoint(folder, definition.state, snapshot, 1, RealClock().Now()));
    save.push_back(bytes / (Now() - start) / 1e6);
    dd.push_back(other);
    ratio.push_back(save.back() / other);
    ASSIGN_OR_RETURN(const Times restored, Restore(folder, definition, &pool));
    restore.push_back(restored.wall_s);
    restore_cpu.push_back(restored.cpu_s);
  }
  Report("checkpoint")
      .Add("what", "save and restore")
      .Add("bytes", static_cast<int64_t>(bytes))
      .Add("rounds", options.rounds)
      .Add("save_mb_per_s", Median(save))
      .Add("dd_mb_per_s", Median(dd))
      .Add("save_over_dd", Median(ratio))
      .Add("restore_s", Median(restore))
      .Add("restore_cpu_s", Median(restore_cpu))
      .Add("restore_mb_per_s", bytes / Median(restore) / 1e6)
      .Print(watch.Elapsed());
  return OkStatus();
}

// Runs a task that trains alone on one thread, and records the end of each step.
class Training {
 public:
  static StatusOr<std::unique_ptr<Training>> Create(const strategy::ModelDefinition& definition,
                                                    state::Snapshot state, int64_t batch) {
    auto training = std::unique_ptr<Training>(new Training());
    auto provide =
        [state = std::move(state)](const state::Snapshot*) mutable -> StatusOr<state::Snapshot> {
      return std::move(state);
    };
    ASSIGN_OR_RETURN(training->strategy_, NewTask(definition, std::move(provide)));
    RETURN_IF_ERROR(training->strategy_->Start().status());
    ASSIGN_OR_RETURN(
        data::Dataset data,
        data::MakeLinear({.weights = std::vector<double>(kFeatures, 0.01), .examples = 2048}));
    const std::vector<data::Column> columns = data::FloatColumns(data);
    ASSIGN_OR_RETURN(
        training->pipeline_,
        data::Pipeline::Create(
            std::make_shared<const data::Dataset>(std::move(data)),
            {.batch_size = batch, .drop_remainder = true, .prefetch = 0, .columns = columns}));
    return training;
  }

  Status Step() {
    strategy::MetricTotals totals;
    RETURN_IF_ERROR(strategy_->Step(*pipeline_->Next(), totals).status());
    ends_.push_back(Now());
    return OkStatus();
  }
  StatusOr<state::SnapshotCopy> BeginSnapshot() { return strategy_->BeginSnapshot(); }
  double last_end() const { return ends_.back(); }
  // Returns the number of steps completed at `time`, including the completed fraction of the
  // current step. At least one step must have ended before `time`, and at least one after `time`.
  double StepsUntil(double time) const {
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), time);
    const double from = *std::prev(after);
    return static_cast<double>(after - ends_.begin()) + (time - from) / (*after - from);
  }

 private:
  std::unique_ptr<strategy::Strategy> strategy_;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::vector<double> ends_;
};

// Records when a save started and ended. Written by the thread that saves.
class SaveTimes {
 public:
  void Ended(const Status& status) {
    MutexLock lock(mutex_);
    ended_ = Now();
    status_ = status;
  }
  StatusOr<double> end() const {  // 0 if the save has not ended
    MutexLock lock(mutex_);
    if (!status_.ok()) return status_;
    return ended_;
  }

 private:
  mutable Mutex mutex_;
  double ended_ ABSL_GUARDED_BY(mutex_) = 0;
  Status status_ ABSL_GUARDED_BY(mutex_);
};

struct Window {
  double seconds = 0, begin_seconds = 0;  // begin_seconds: time until the next step could start
  double steps_with = 0, steps_without = 0;
};

// Trains while a thread saves the state, and then for the same time without a save.
StatusOr<Window> TrainDuringSave(Training& training, const state::TrainingState& state,
                                 const std::string& folder, int64_t step) {
  auto times = std::make_shared<SaveTimes>();
  train::CheckpointSaver saver({.write =
                                    [=](const state::Snapshot& snapshot, Time now, int64_t) {
                                      const Status status =
                                          train::SaveCheckpoint(folder, state, snapshot, 1, now);
                                      times->Ended(status);
                                      return status;
                                    },
                                .mark = [](int64_t, Time) { return OkStatus(); },
                                .may_write = nullptr,
                                .show = nullptr,
                                .policy = {}},
                               RealClock());
  const double begin = training.last_end();
  saver.Require();
  if (!saver.Due(step)) return Internal("no save is due at step ", step);
  ASSIGN_OR_RETURN(state::SnapshotCopy snapshot, training.BeginSnapshot());
  saver.Save(std::move(snapshot));
  const double begun = Now();
  double end = 0;
  while (end == 0 || training.last_end() < end) {
    RETURN_IF_ERROR(training.Step());
    ASSIGN_OR_RETURN(end, times->end());
  }
  Window window{.seconds = end - begin, .begin_seconds = begun - begin};
  const double quiet = training.last_end();
  while (training.last_end() <= quiet + window.seconds) RETURN_IF_ERROR(training.Step());
  const double steps_at_end = training.StepsUntil(end);
  window.steps_with = steps_at_end - training.StepsUntil(begin);
  window.steps_without = training.StepsUntil(quiet + window.seconds) - training.StepsUntil(quiet);
  return window;
}

Status TrainAndSave(const Options& options, const std::string& folder,
                    const strategy::ModelDefinition& definition, state::Snapshot initial) {
  const int64_t bytes = BytesOf(initial);
  ASSIGN_OR_RETURN(auto training, Training::Create(definition, std::move(initial), options.batch));
  for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(training->Step());
  std::vector<double> ratio, seconds, begin, rate;
  Stopwatch watch;
  for (int round = 0; round < options.rounds; ++round) {
    ASSIGN_OR_RETURN(const Window window,
                     TrainDuringSave(*training, definition.state, folder, 1000 + round));
    ratio.push_back(window.steps_with / window.steps_without);
    seconds.push_back(window.seconds);
    begin.push_back(window.begin_seconds);
    rate.push_back(window.steps_without * static_cast<double>(options.batch) / window.seconds);
  }
  Report("checkpoint")
      .Add("what", "training during a save")
      .Add("bytes", bytes)
      .Add("batch", options.batch)
      .Add("rounds", options.rounds)
      .Add("save_s", Median(seconds))
      .Add("begin_s", Median(begin))
      .Add("samples_per_s_without_save", Median(rate))
      .Add("samples_during_save", Median(ratio))
      .Print(watch.Elapsed());
  return OkStatus();
}

Status Run(const Options& options) {
  const std::string folder = StrCat(options.folder, "/tfjob-bench-checkpoint-", getpid());
  struct Remove {
    const std::string& folder;
    ~Remove() { std::filesystem::remove_all(folder); }
  } remove{folder};
  std::filesystem::create_directories(folder);
  strategy::ModelDefinition definition = Define(options);
  RETURN_IF_ERROR(strategy::DefineVariables(definition));
  state::Snapshot state = strategy::InitialState(definition);
  RETURN_IF_ERROR(SaveAndRestore(options, folder, definition, state));
  return TrainAndSave(options, folder, definition, std::move(state));
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Saves and restores checkpoints, also while a task trains", "checkpoint");
  app.add_option("--bytes", options.bytes, "Bytes of the state: 1Gi")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--batch", options.batch, "Examples in a batch")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Measurements, of which the median is printed")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--folder", options.folder, "A folder on the disk to measure")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "checkpoint: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
