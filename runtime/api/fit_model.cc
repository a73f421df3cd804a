// Implements CompiledModel::Fit.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "runtime/api/backup.h"
#include "runtime/api/compiled_state.h"
#include "runtime/api/fit.h"
#include "runtime/base/mutex.h"
#include "runtime/strategy/select.h"
#include "runtime/train/job_definition.h"

namespace tfjob::api {
namespace {

tfjob::Status CheckFitOptions(const FitOptions& options) {
  const auto at_least = [](const char* name, int64_t least, int64_t value) {
    if (value >= least) return OkStatus();
    return InvalidArgument(name, ": expected at least ", least, ", got ", value);
  };
  RETURN_IF_ERROR(CheckBatchSize("batch_size", options.batch_size));
  RETURN_IF_ERROR(at_least("initial_epoch", 0, options.initial_epoch));
  RETURN_IF_ERROR(at_least("epochs", options.initial_epoch, options.epochs));
  RETURN_IF_ERROR(at_least("validation_freq", 1, options.validation_freq));
  RETURN_IF_ERROR(at_least("shuffle_buffer", 0, options.shuffle_buffer));
  if (!options.shuffle && options.shuffle_buffer > 0)
    return InvalidArgument("shuffle_buffer: needs shuffle, which is false; change one of the two");
  if (options.validation_batch_size == 0) return OkStatus();
  return CheckBatchSize("validation_batch_size", options.validation_batch_size);
}

// Returns the config of a Fit, without the length of the run.
StatusOr<config::TrainingConfig> ConfigOfFit(const CompiledData& state, const FitOptions& options) {
  config::TrainingConfig config = state.config;
  config.global_batch_size = options.batch_size;
  config.data.shuffle = options.shuffle;
  if (options.shuffle) config.data.shuffle_buffer = options.shuffle_buffer;
  Json weights = Json::object();
  for (const auto& [label, weight] : options.class_weight) weights[StrCat(label)] = weight;
  Json keys = Json::object();
  if (!weights.empty()) keys["class_weight"] = std::move(weights);
  RETURN_IF_ERROR(config::SetOpenKeys(config, keys));
  if (TerminatesOnNan(options.callbacks)) config.on_non_finite = config::OnNonFinite::kContinue;
  config.eval.batch_size =
      options.validation_batch_size > 0 ? options.validation_batch_size : options.batch_size;
  return config;
}

// Returns the step at which a Fit ends.
StatusOr<int64_t> LastStep(const FitOptions& options, const FitPlan& plan) {
  constexpr int64_t kMostSteps = int64_t{1} << 53;
  const int64_t epochs = options.epochs - options.initial_epoch;
  if (epochs <= (kMostSteps - plan.start_step) / plan.steps_per_epoch)
    return plan.start_step + epochs * plan.steps_per_epoch;
  return InvalidArgument("epochs: ", options.epochs, " epochs of ", plan.steps_per_epoch,
                         " steps are more than 2^53 steps; to train until a callback ends the ",
                         "training, use a smaller number, such as 1000000");
}

// The data, the configuration and the length of a training.
struct Prepared {
  config::TrainingConfig config;
  std::shared_ptr<const tfjob::data::Source> train;
  FitPlan plan;
  int64_t first_epoch = 0;  // the number of epochs that determine the order of the examples
  int64_t batches_per_epoch = 0;
  const BackupAndRestore* backup = nullptr;  // null for none
};

StatusOr<Prepared> Prepare(CompiledData& state, const Dataset& train, const FitOptions& options) {
  RETURN_IF_ERROR(CheckFitOptions(options));
  const cluster::TfConfig& tf_config = state.strategy().tf_config;
  const int tasks = cluster::TrainingTaskCount(tf_config);
  RETURN_IF_ERROR(CheckCallbacks(options.callbacks, tasks));
  if (options.batch_size < tasks) {
    return InvalidArgument("batch_size: expected at least one example for each of the ", tasks,
                           " tasks, got ", options.batch_size);
  }
  const model::Model& model = state.internal_model();
  Prepared made;
  ASSIGN_OR_RETURN(made.config, ConfigOfFit(state, options));
  ASSIGN_OR_RETURN(made.backup, BackupOf(options.callbacks));
  ASSIGN_OR_RETURN(made.train, OpenDataset(train, train::Split::kTrain, model, made.config));
  if (made.backup != nullptr && !made.train->random_access()) {
    return InvalidArgument(
        "callbacks: BackupAndRestore needs examples that can be read from any position on, and a ",
        "Generator has none; give a data::Source, or Cache() the examples");
  }
  ASSIGN_OR_RETURN(
      const strategy::ModelDefinition definition,
      train::DefineModel(made.config, train::Split::kTrain, *made.train, tasks, model));
  RETURN_IF_ERROR(state.Build(definition.build.features));
  made.config.model = {};  // Build has read its files
  if (options.validation != nullptr) {
    ASSIGN_OR_RETURN(made.plan.validation,
                     OpenDataset(*options.validation, train::Split::kEval, model, made.config));
    // The run would otherwise evaluate these data itself.
    made.config.data.eval.format = config::DataFormat::kNone;
  }
  ASSIGN_OR_RETURN(const config::StrategyKind kind,
                   strategy::Select(made.config.strategy.kind, tf_config));
  const bool together = strategy::MakesGlobalBatches(kind);
  const int64_t examples = made.train->size();
  made.batches_per_epoch = train::BatchesPerEpoch(made.config, examples, tasks, together);
  made.plan.steps_per_epoch = train::StepsPerEpoch(made.config, examples, tasks, together);
  made.plan.start_step = state.values->global_step;
  if (made.backup != nullptr) SetUpBackup(*made.backup, made.plan.steps_per_epoch, made.config);
  made.config.epochs = 0;
  ASSIGN_OR_RETURN(made.plan.last_step, LastStep(options, made.plan));
  made.config.max_steps = made.plan.last_step;
  made.first_epoch = options.initial_epoch > 0 ? options.initial_epoch : state.epochs;
  return made;
}

// Takes the right of this process to train in a job of several tasks. Each run of such a job needs
// all tasks, and the ports of this one.
tfjob::Status TakeTheOnlyRun(int tasks, const cluster::TfConfig& tf_config) {
  static Mutex mutex;
  static std::set<std::string>* const kUsed = new std::set<std::string>;
  if (tasks <= 1) return OkStatus();
  MutexLock lock(mutex);
  if (kUsed->insert(tf_config.cluster.address(tf_config.task)).second) return OkStatus();
  return Unimplemented(
      "Fit: a task of a job of several tasks can call Fit only once in a process; train ",
      "for all epochs in one call, and start the process again if that call has failed");
}

// Keeps what the run has ended with.
void Keep(const FitRun& run, const Prepared& prepared, CompiledData& state) {
  state.history = run.history();
  if (run.result() == nullptr) return;
  state.values = run.result();
  state.epochs = prepared.first_epoch + run.epochs_begun();
  SetRate(run.rate(), state);
}

// Returns the task that trains from the state with the present config.
train::TaskOptions TaskFrom(const CompiledData& state, const Prepared& prepared,
                            const std::shared_ptr<const state::Snapshot>& start) {
  train::TaskOptions task = TaskOptionsOf(state, prepared.config);
  const int64_t made = start->global_step - prepared.plan.start_step;
  task.inputs = {.model = Access::Data(state.model).model,
                 .train = prepared.train,
                 .eval = nullptr,
                 .start = start,
                 .drawn = prepared.first_epoch * prepared.batches_per_epoch + made};
  return task;
}

// Trains, in one run or, if the learning rate is changed, in several, and keeps the result.
tfjob::Status Train(CompiledData& state, const FitOptions& options, Prepared& prepared) {
  std::optional<ScopedStopOnSignals> signals;
  if (state.session->options.handle_signals) signals.emplace();
  const StopSource& stop = signals ? signals->source() : NoStop();
  auto context = std::make_unique<train::TaskContext>(TaskFrom(state, prepared, state.values), stop,
                                                      RealClock());
  FitRun run(state, options, prepared.plan, prepared.config, *context);
  tfjob::Status trained = train::RunTraining(*context, &run);
  while (trained.ok() && run.next_rate()) {
    const std::shared_ptr<const state::Snapshot> start = run.result();
    prepared.config.optimizer.learning_rate = run.next_rate();
    auto next =
        std::make_unique<train::TaskContext>(TaskFrom(state, prepared, start), stop, RealClock());
    run.Continue(*next);
    context = std::move(next);
    trained = train::RunTraining(*context, &run);
  }
  if (!trained.ok() || !run.completed().ok()) run.Abandon();
  Keep(run, prepared, state);
  RETURN_IF_ERROR(run.callback_error());
  RETURN_IF_ERROR(trained);
  return run.completed();
}

StatusOr<History> FitOn(CompiledData& state, const Dataset& train, const FitOptions& options) {
  state.history = {};
  ASSIGN_OR_RETURN(Prepared prepared, Prepare(state, train, options));
  if (options.epochs == options.initial_epoch) return History();
  const cluster::TfConfig& tf_config = state.strategy().tf_config;
  const int tasks = cluster::TrainingTaskCount(tf_config);
  RETURN_IF_ERROR(TakeTheOnlyRun(tasks, tf_config));
  RETURN_IF_ERROR(Train(state, options, prepared));
  // In a job of several tasks, a task that is restarted needs the backup to see that nothing is
  // left to do.
  if (prepared.backup != nullptr && prepared.backup->delete_checkpoint && tasks == 1)
    RemoveBackup(*prepared.backup);
  return state.history;
}

}  // namespace

Result<History> CompiledModel::Fit(const Dataset& train, const FitOptions& options) {
  const std::shared_ptr<CompiledData> data = data_;
  const tfjob::Status idle = data->ExpectIdle();
  if (!idle.ok()) return ToPublic(idle);
  data->training = true;
  auto history = FitOn(*data, train, options);
  data->training = false;
  return ToPublic(std::move(history));
}

}  // namespace tfjob::api
