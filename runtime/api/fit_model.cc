// Implements CompiledModel::Fit.
#include <algorithm>
#include <utility>

#include "runtime/api/backup.h"
#include "runtime/api/compiled_state.h"
#include "runtime/api/fit.h"
#include "runtime/strategy/select.h"
#include "runtime/train/job_definition.h"

namespace tfjob::api {
namespace {

tfjob::Status CheckFitOptions(const FitOptions& options) {
  const auto at_least = [](const char* name, int64_t least, int64_t value) {
    if (value >= least) return OkStatus();
    return InvalidArgument(name, ": expected at least ", least, ", got ", value);
  };
  RETURN_IF_ERROR(at_least("batch_size", 1, options.batch_size));
  RETURN_IF_ERROR(at_least("initial_epoch", 0, options.initial_epoch));
  RETURN_IF_ERROR(at_least("epochs", options.initial_epoch, options.epochs));
  RETURN_IF_ERROR(at_least("validation_freq", 1, options.validation_freq));
  return at_least("validation_batch_size", 0, options.validation_batch_size);
}

// Returns the config of a Fit, without the length of the run.
config::TrainingConfig ConfigOfFit(const CompiledData& state, const FitOptions& options) {
  config::TrainingConfig config = state.config;
  config.global_batch_size = options.batch_size;
  config.data.shuffle = options.shuffle;
  config.class_weight = options.class_weight;
  config.eval.batch_size =
      options.validation_batch_size > 0 ? options.validation_batch_size : options.batch_size;
  return config;
}

// What a Fit trains on, and for how long.
struct Prepared {
  config::TrainingConfig config;
  std::shared_ptr<const tfjob::data::Source> train;
  FitPlan plan;
  int64_t batches_per_epoch = 0;
  const BackupAndRestore* backup = nullptr;  // null for none
};

StatusOr<Prepared> Prepare(CompiledData& state, const Dataset& train, const FitOptions& options) {
  RETURN_IF_ERROR(CheckFitOptions(options));
  const cluster::TfConfig& tf_config = state.strategy().tf_config;
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (tasks > 1 && state.fitted) {
    return Unimplemented("Fit: a job of several tasks can train a model only once; train for all ",
                         "epochs in one call");
  }
  Prepared made{.config = ConfigOfFit(state, options)};
  ASSIGN_OR_RETURN(made.backup, BackupOf(options.callbacks));
  const model::Model& model = state.internal_model();
  ASSIGN_OR_RETURN(made.train, OpenDataset(train, train::Split::kTrain, model, made.config));
  ASSIGN_OR_RETURN(
      const strategy::ModelDefinition definition,
      train::DefineModel(made.config, train::Split::kTrain, *made.train, tasks, model));
  RETURN_IF_ERROR(state.Build(definition.build.features));
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
  made.config.max_steps =
      made.plan.start_step + (options.epochs - options.initial_epoch) * made.plan.steps_per_epoch;
  return made;
}

StatusOr<History> FitOn(CompiledData& state, const Dataset& train, const FitOptions& options) {
  ASSIGN_OR_RETURN(Prepared prepared, Prepare(state, train, options));
  if (options.epochs == options.initial_epoch) return History();
  train::TaskOptions task = TaskOptionsOf(state, prepared.config);
  task.inputs = {.model = Access::Data(state.model).model,
                 .train = prepared.train,
                 .eval = nullptr,
                 .start = state.values,
                 .drawn = state.epochs * prepared.batches_per_epoch};
  const ScopedStopOnSignals stop(ProcessStop());
  train::TaskContext context(std::move(task), ProcessStop(), RealClock());
  FitRun run(options, prepared.plan, prepared.config, context);
  const tfjob::Status trained = train::RunTraining(context, &run);
  if (run.result() != nullptr) {
    const int64_t steps = run.result()->global_step - prepared.plan.start_step;
    const int64_t per_epoch = prepared.plan.steps_per_epoch;
    state.epochs += std::max<int64_t>((steps + per_epoch - 1) / per_epoch, 0);
    state.values = run.result();
    state.fitted = true;
  }
  RETURN_IF_ERROR(trained);
  const BackupAndRestore* backup = prepared.backup;
  if (backup != nullptr && backup->delete_checkpoint && state.session->strategy.is_chief())
    RETURN_IF_ERROR(RemoveBackup(backup->backup_dir));
  return run.history();
}

}  // namespace

Result<History> CompiledModel::Fit(const Dataset& train, const FitOptions& options) {
  return ToPublic(FitOn(*data_, train, options));
}

}  // namespace tfjob::api
