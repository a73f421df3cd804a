// Implements CompiledModel::Fit.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/api/compiled_state.h"
#include "runtime/api/datasets/split_examples.h"
#include "runtime/api/fit/backup.h"
#include "runtime/api/fit/fit.h"
#include "runtime/api/fit/fit_result.h"
#include "runtime/api/fit/job_role.h"
#include "runtime/base/log.h"
#include "runtime/strategy/select.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::api {
namespace {

constexpr Logger kFitModelLog("api");
// How long a task looks for the result of a run that has ended without it.
constexpr Duration kResultPatience = 60s, kResultRetry = 200ms;

tfjob::Status CheckFitOptions(const FitOptions& options) {
  const auto at_least = [](const char* name, int64_t least, int64_t value) {
    if (value >= least) return OkStatus();
    return InvalidArgument(name, ": expected at least ", least, ", got ", value);
  };
  RETURN_IF_ERROR(CheckBatchSize("batch_size", options.batch_size));
  RETURN_IF_ERROR(at_least("initial_epoch", 0, options.initial_epoch));
  RETURN_IF_ERROR(at_least("epochs", options.initial_epoch, options.epochs));
  RETURN_IF_ERROR(at_least("validation_freq", 1, options.validation_freq));
  RETURN_IF_ERROR(at_least("steps_per_epoch", 0, options.steps_per_epoch));
  RETURN_IF_ERROR(at_least("validation_steps", 0, options.validation_steps));
  if (options.validation_split != 0 && options.validation != nullptr)
    return InvalidArgument("expected either validation_split or `validation`, got both");
  RETURN_IF_ERROR(at_least("shuffle_buffer", 0, options.shuffle_buffer));
  if (!options.shuffle && options.shuffle_buffer > 0)
    return InvalidArgument("shuffle_buffer: needs shuffle, which is false; change one of the two");
  if (options.validation_batch_size == 0) return OkStatus();
  return CheckBatchSize("validation_batch_size", options.validation_batch_size);
}

config::ShardPolicy ToShardPolicy(AutoShard shard) {
  switch (shard) {
    case AutoShard::kFile:
      return config::ShardPolicy::kFile;
    case AutoShard::kData:
      return config::ShardPolicy::kData;
    case AutoShard::kOff:
      return config::ShardPolicy::kOff;
    case AutoShard::kAuto:
      break;
  }
  return config::ShardPolicy::kAuto;
}

// Returns the config of a Fit, without the length of the run.
StatusOr<config::TrainingConfig> ConfigOfFit(const CompiledData& state, const FitOptions& options) {
  config::TrainingConfig config = state.config;
  // If the number of training tasks is unknown, each task draws its own batches.
  const bool dynamic = state.strategy().tf_config.cluster.sparse();
  (dynamic ? config.batch_size : config.global_batch_size) = options.batch_size;
  config.data.shuffle = options.shuffle;
  if (options.shuffle) config.data.shuffle_buffer = options.shuffle_buffer;
  config.data.shard = ToShardPolicy(options.shard);
  Json weights = Json::object();
  for (const auto& [label, weight] : options.class_weight) weights[StrCat(label)] = weight;
  Json keys = Json::object();
  if (!weights.empty()) keys["class_weight"] = std::move(weights);
  RETURN_IF_ERROR(config::SetOpenKeys(config, keys));
  RETURN_IF_ERROR(
      SetBatchKeys(options.bucket_by_length, options.mask_tokens, options.augment, config));
  if (TerminatesOnNan(options.callbacks)) config.on_non_finite = config::OnNonFinite::kContinue;
  config.eval.batch_size =
      options.validation_batch_size > 0 ? options.validation_batch_size : options.batch_size;
  config.eval.steps = options.validation_steps;
  return config;
}

constexpr int64_t kMostSteps = int64_t{1} << 53;

// Returns the last step of a Fit.
StatusOr<int64_t> LastStep(const FitOptions& options, const FitPlan& plan) {
  const int64_t epochs = options.epochs - options.initial_epoch;
  if (epochs <= (kMostSteps - plan.start_step) / plan.steps_per_epoch)
    return plan.start_step + epochs * plan.steps_per_epoch;
  return InvalidArgument("epochs: ", options.epochs, " epochs of ", plan.steps_per_epoch,
                         " steps are more than 2^53 steps; to train until a callback ends the ",
                         "training, use a smaller number, such as 1000000");
}

// The data, the configuration and the length of a training run.
struct Prepared {
  config::TrainingConfig config;
  std::shared_ptr<const tfjob::data::Source> train;
  FitPlan plan;
  DrawnBatches drawn;  // before this Fit
  int64_t batches_per_epoch = 0;
  const BackupAndRestore* backup = nullptr;  // null for none
  train::RunOrder order;
};

// Returns InvalidArgument if the batch cannot be split among the tasks.
tfjob::Status CheckBatchOfTasks(const cluster::TfConfig& tf_config, int64_t batch_size) {
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (batch_size < tasks) {
    return InvalidArgument("batch_size: expected at least one example for each of the ", tasks,
                           " tasks, got ", batch_size);
  }
  if (!HasServers(tf_config) || tasks == 0 || batch_size % tasks == 0) return OkStatus();
  return InvalidArgument("batch_size: with parameter servers, expected a multiple of the ", tasks,
                         " tasks that train, got ", batch_size);
}

// Returns the index of the first batch that this Fit draws. The index counts the batches of all
// passes, each of which has `per_pass` batches.
StatusOr<int64_t> FirstBatch(const FitOptions& options, const DrawnBatches& drawn, int64_t per_pass,
                             int64_t per_epoch) {
  if (options.initial_epoch > 0) {
    if (options.initial_epoch <= kMostSteps / per_epoch) return options.initial_epoch * per_epoch;
    return InvalidArgument("initial_epoch: ", options.initial_epoch, " epochs of ", per_epoch,
                           " batches are more than 2^53 batches; use a smaller number");
  }
  if (drawn.per_pass == 0 || drawn.per_pass == per_pass) return drawn.batches;
  // If the examples or the batch size have changed, Fit starts with a new pass.
  const int64_t passes = drawn.batches / drawn.per_pass + (drawn.batches % drawn.per_pass > 0);
  return passes <= kMostSteps / per_pass ? passes * per_pass : 0;
}

// Returns an error if the job has an evaluator that would find no checkpoints, or would not have
// the examples for validation.
tfjob::Status CheckEvaluator(const cluster::TfConfig& tf_config, const FitOptions& options,
                             const BackupAndRestore* backup) {
  const bool evaluator = cluster::RoleOf(tf_config) == cluster::Role::kEvaluator ||
                         tf_config.cluster.size("evaluator") > 0;
  if (!evaluator) return OkStatus();
  if (options.validation_split != 0) {
    return Unimplemented("validation_split: the job has an evaluator, which cannot evaluate ",
                         "a part of the training data; give the examples as `validation`");
  }
  if (backup != nullptr) return OkStatus();
  return InvalidArgument(
      "callbacks: the job has an evaluator, which reads the checkpoints of a BackupAndRestore, "
      "but ",
      "there is none; add one, with a folder that all tasks share, or remove the evaluator");
}

// Returns an error if another Fit follows, but a task that is started again could not find this one
// complete.
tfjob::Status CheckFollowed(const cluster::TfConfig& tf_config, const FitOptions& options,
                            const BackupAndRestore* backup) {
  if (!options.followed_by_fit || backup != nullptr || IsAlone(tf_config)) return OkStatus();
  return InvalidArgument(
      "followed_by_fit: a task that is started again reads the result of this Fit from the folder ",
      "of a BackupAndRestore, but there is none; add one to the callbacks, with a folder that all ",
      "tasks share");
}

// Returns the step from which all tasks plan this Fit.
int64_t FirstStep(const CompiledData& state) {
  const int64_t step = state.values->global_step;
  return step == state.last_end.step ? state.last_end.planned : step;
}

StatusOr<Prepared> Prepare(CompiledData& state, const Dataset& train, const FitOptions& options) {
  const cluster::TfConfig& tf_config = state.strategy().tf_config;
  const int tasks = cluster::TrainingTaskCount(tf_config);
  RETURN_IF_ERROR(CheckBatchOfTasks(tf_config, options.batch_size));
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
  made.config.model = {};  // Build has already read the model's files
  // If the job has an evaluator, only the evaluator validates.
  if (options.validation != nullptr && tf_config.cluster.size("evaluator") == 0) {
    ASSIGN_OR_RETURN(made.plan.validation,
                     OpenDataset(*options.validation, train::Split::kEval, model, made.config));
    // The run would otherwise evaluate these data itself.
    made.config.data.eval.format = config::DataFormat::kNone;
  }
  ASSIGN_OR_RETURN(const config::StrategyKind kind,
                   strategy::Select(made.config.strategy.kind, tf_config));
  const bool together = strategy::MakesGlobalBatches(kind);
  made.drawn.per_pass =
      std::max<int64_t>(1, train::BatchesPerEpoch(made.config, *made.train, tasks, together));
  made.batches_per_epoch = made.drawn.per_pass;
  made.plan.steps_per_epoch = train::StepsPerEpoch(made.config, *made.train, tasks, together);
  if (options.steps_per_epoch > 0) {
    const int64_t per_step = together ? 1 : config::GradientsPerStep(made.config.strategy, tasks);
    if (options.steps_per_epoch > kMostSteps / per_step)
      return InvalidArgument("steps_per_epoch: expected fewer steps, got ",
                             options.steps_per_epoch);
    made.plan.steps_per_epoch = options.steps_per_epoch;
    made.batches_per_epoch = options.steps_per_epoch * per_step;
  }
  made.plan.start_step = FirstStep(state);
  if (made.backup != nullptr) SetUpBackup(*made.backup, made.plan.steps_per_epoch, made.config);
  made.config.epochs = 0;
  ASSIGN_OR_RETURN(made.plan.last_step, LastStep(options, made.plan));
  made.config.max_steps = made.plan.last_step;
  ASSIGN_OR_RETURN(made.drawn.batches,
                   FirstBatch(options, state.drawn, made.drawn.per_pass, made.batches_per_epoch));
  return made;
}

// Uses the values as those after Fit.
void UseResult(std::shared_ptr<const state::Snapshot> values, const Prepared& prepared,
               int64_t epochs_begun, CompiledData& state) {
  state.values = std::move(values);
  state.last_end = {.step = state.values->global_step,
                    .planned = std::min(state.values->global_step, prepared.plan.last_step)};
  state.drawn = prepared.drawn;
  state.drawn.batches += epochs_begun * prepared.batches_per_epoch;
  // In a job, not every task knows the rate. The next run sends it to all of them with the values,
  // and their optimizers must be equal until then.
  if (!prepared.order.followed || IsAlone(state.strategy().tf_config)) UseRateOfValues(state);
}

// Updates the model with the values and the history from the end of the run.
void Keep(const FitRun& run, const Prepared& prepared, CompiledData& state) {
  state.history = run.history();
  if (run.result() != nullptr) UseResult(run.result(), prepared, run.epochs_begun(), state);
}

// Returns the options of a task that trains from the current values.
train::TaskOptions TaskFrom(const CompiledData& state, const Prepared& prepared) {
  train::TaskOptions task = TaskOptionsOf(state, prepared.config);
  task.order = prepared.order;
  task.inputs = {.model = Access::Data(state.model).model,
                 .train = prepared.train,
                 .eval = nullptr,
                 .start = state.values,
                 .drawn = prepared.drawn.batches};
  return task;
}

// Trains, and stores the result.
tfjob::Status Train(CompiledData& state, const FitOptions& options, const Prepared& prepared,
                    const StopSource& stop, int64_t& run_end) {
  train::TaskContext context(TaskFrom(state, prepared), stop, RealClock());
  FitRun run(state, options, prepared.plan, prepared.config, context);
  const tfjob::Status trained = train::RunTraining(context, &run);
  if (!trained.ok() || !run.completed().ok()) run.Abandon();
  Keep(run, prepared, state);
  run_end = run.run_end();
  RETURN_IF_ERROR(run.callback_error());
  RETURN_IF_ERROR(trained);
  return run.completed();
}

FitId IdOf(const CompiledData& state, const Prepared& prepared) {
  return {.folder = prepared.config.model_dir,
          .job_uid = state.strategy().job.uid,
          .run = prepared.order.number};
}

// Returns whether this task has the values after Fit. With parameter servers, only the chief does.
bool HasResult(const cluster::TfConfig& tf_config) {
  return !HasServers(tf_config) || cluster::RoleOf(tf_config) == cluster::Role::kChief;
}

// Marks the model as trained in a task that does not have the values after Fit.
void PassOver(const Prepared& prepared, const FitOptions& options, CompiledData& state) {
  auto values = std::make_shared<state::Snapshot>(*state.values);  // shares the arrays
  values->global_step = prepared.plan.last_step;
  UseResult(std::move(values), prepared, options.epochs - options.initial_epoch, state);
}

// If this Fit was completed before this process was started, uses its result, and returns the step
// at which its run has ended. Otherwise, returns nullopt.
StatusOr<std::optional<int64_t>> TakeResult(const Prepared& prepared, const FitOptions& options,
                                            CompiledData& state) {
  const bool values = HasResult(state.strategy().tf_config);
  ASSIGN_OR_RETURN(auto result, ReadFitResult(IdOf(state, prepared), prepared.plan.last_step,
                                              values ? &state.definition->state : nullptr));
  if (!result) return std::optional<int64_t>();
  if (values) {
    UseResult(result->values, prepared, result->epochs_begun, state);
    state.history = std::move(result->history);
  } else {
    PassOver(prepared, options, state);
  }
  return std::optional<int64_t>(result->run_end);
}

// Waits for the result of a run that has ended without this task, and returns the step at which the
// run has ended.
StatusOr<int64_t> AwaitResult(const Prepared& prepared, const FitOptions& options,
                              const StopSource& stop, CompiledData& state) {
  const Duration deadline = RealClock().Monotonic() + kResultPatience;
  for (;;) {
    ASSIGN_OR_RETURN(const auto run_end, TakeResult(prepared, options, state));
    if (run_end) return *run_end;
    if (stop.WaitFor(kResultRetry)) return Cancelled("asked to stop");
    if (RealClock().Monotonic() >= deadline) break;
  }
  return Unavailable("BackupAndRestore: this Fit has ended without this task, which does not see ",
                     "its result in ", prepared.config.model_dir,
                     "; use a folder that all tasks share (ReadWriteMany)");
}

// Trains in a Fit that another one follows, and returns the step at which its run has ended, or 0
// in tasks that do not know it. A run that has ended without this task is no error.
StatusOr<int64_t> TrainFollowed(const FitOptions& options, const Prepared& prepared,
                                const StopSource& stop, CompiledData& state) {
  int64_t run_end = 0;
  const tfjob::Status trained = Train(state, options, prepared, stop, run_end);
  if (trained.ok()) return run_end;
  if (!Access::IsJobOver(ToPublic(trained))) return trained;
  if (HasResult(state.strategy().tf_config)) return AwaitResult(prepared, options, stop, state);
  PassOver(prepared, options, state);
  return run_end;
}

// Runs a Fit that another one follows, unless it is already complete.
tfjob::Status RunFollowed(const FitOptions& options, const Prepared& prepared,
                          CompiledData& state) {
  const cluster::TfConfig& tf_config = state.strategy().tf_config;
  std::optional<int64_t> run_end;
  if (prepared.backup != nullptr) {
    ASSIGN_OR_RETURN(run_end, TakeResult(prepared, options, state));
  }
  if (run_end) {
    kFitModelLog.Info("this Fit is complete: nothing is left to train",
                      {{"step", *run_end}, {"folder", prepared.config.model_dir}});
  } else {
    RETURN_IF_ERROR(
        UntilSignal(state.session->options, [&](const StopSource& stop) -> tfjob::Status {
          ASSIGN_OR_RETURN(run_end, TrainFollowed(options, prepared, stop, state));
          return OkStatus();
        }));
  }
  const bool chief = cluster::RoleOf(tf_config) == cluster::Role::kChief;
  EndRun(tf_config, chief ? run_end : std::nullopt);
  return OkStatus();
}

// Returns a function that prints an evaluator's results, or null if nothing is to be printed.
std::function<void(int64_t, const std::vector<std::pair<std::string, double>>&)> Printer(
    Verbose verbose) {
  if (verbose == Verbose::kSilent) return nullptr;
  return [](int64_t step, const std::vector<std::pair<std::string, double>>& values) {
    std::cout << "step " << step << MetricsText(Metrics(values)) << std::endl;
  };
}

// Evaluates the job's checkpoints, which are in the backup's folder.
tfjob::Status FollowCheckpoints(const CompiledData& state, const FitOptions& options,
                                const BackupAndRestore& backup) {
  ASSIGN_OR_RETURN(config::TrainingConfig config, ConfigOfFit(state, options));
  if (options.validation == nullptr)
    return InvalidArgument("validation: expected the examples that the evaluator evaluates");
  ASSIGN_OR_RETURN(auto source, OpenDataset(*options.validation, train::Split::kEval,
                                            state.internal_model(), config));
  SetUpBackup(backup, /*steps_per_epoch=*/1, config);
  config.max_steps = 1;  // any value: the other tasks determine the length
  train::TaskOptions task = TaskOptionsOf(state, std::move(config));
  task.inputs.model = Access::Data(state.model).model;
  task.inputs.eval = std::move(source);
  task.on_evaluation = Printer(options.verbose);
  const RunUse use{.followed = options.followed_by_fit, .folder = task.config.model_dir};
  return RunUntilJobEnds(std::move(task), state.session->options, use);
}

// Serves variables until the job has ended.
tfjob::Status Serve(const CompiledData& state, const FitOptions& options,
                    const BackupAndRestore* backup) {
  config::TrainingConfig config = state.config;
  // The folder records whether the run has failed, so that a restarted server stops, too.
  if (backup != nullptr) SetUpBackup(*backup, /*steps_per_epoch=*/1, config);
  const RunUse use{.followed = options.followed_by_fit, .folder = config.model_dir};
  return RunUntilJobEnds(TaskOptionsOf(state, std::move(config)), state.session->options, use);
}

// Serves variables in a ps, or evaluates checkpoints in an evaluator.
tfjob::Status Assist(const CompiledData& state, const FitOptions& options,
                     const BackupAndRestore* backup) {
  const cluster::TfConfig& tf_config = state.strategy().tf_config;
  if (options.epochs == options.initial_epoch) {
    if (options.followed_by_fit) return OkStatus();
    // The chief will not train, so it will not end the job.
    return JobOver(Cancelled(cluster::ToString(tf_config.task), " has nothing to do: Fit starts ",
                             "and ends at epoch ", options.epochs));
  }
  if (cluster::RoleOf(tf_config) == cluster::Role::kParameterServer)
    return Serve(state, options, backup);
  return FollowCheckpoints(state, options, *backup);
}

StatusOr<History> FitOn(CompiledData& state, const Dataset& train, const FitOptions& options) {
  state.history = {};
  state.on_batches = {};
  const cluster::TfConfig& tf_config = state.strategy().tf_config;
  RETURN_IF_ERROR(CheckFitOptions(options));
  RETURN_IF_ERROR(CheckCallbacks(options.callbacks, tf_config));
  ASSIGN_OR_RETURN(const BackupAndRestore* backup, BackupOf(options.callbacks));
  RETURN_IF_ERROR(CheckEvaluator(tf_config, options, backup));
  RETURN_IF_ERROR(CheckFollowed(tf_config, options, backup));
  const cluster::Role role = cluster::RoleOf(tf_config);
  if (role == cluster::Role::kParameterServer || role == cluster::Role::kEvaluator) {
    RETURN_IF_ERROR(Assist(state, options, backup));
    return History();
  }
  std::optional<std::pair<Dataset, Dataset>> parts;
  FitOptions divided = options;
  if (options.validation_split != 0) {
    ASSIGN_OR_RETURN(parts, SplitExamples(train, options.validation_split));
    divided.validation = &parts->second;
  }
  ASSIGN_OR_RETURN(Prepared prepared, Prepare(state, parts ? parts->first : train, divided));
  if (options.epochs == options.initial_epoch) return History();
  ASSIGN_OR_RETURN(prepared.order, BeginRun(tf_config, {.followed = options.followed_by_fit,
                                                        .folder = prepared.config.model_dir}));
  if (options.followed_by_fit) {
    RETURN_IF_ERROR(RunFollowed(divided, prepared, state));
    return state.history;
  }
  RETURN_IF_ERROR(UntilSignal(state.session->options, [&](const StopSource& stop) {
    int64_t run_end = 0;
    return Train(state, options, prepared, stop, run_end);
  }));
  // In a job, keep the backup, because a restarted task uses it to detect that training is
  // complete.
  if (prepared.backup != nullptr && prepared.backup->delete_checkpoint && IsAlone(tf_config))
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
