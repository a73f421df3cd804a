// Implements the training of Estimators: Train and TrainAndEvaluate.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "runtime/api/compiled_state.h"
#include "runtime/api/estimator.h"
#include "runtime/api/estimators/estimator_data.h"
#include "runtime/api/estimators/local_evaluations.h"
#include "runtime/api/fit/job_role.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::api {
namespace {

tfjob::Status CheckSpecs(const TrainSpec& train, const EvalSpec& eval) {
  if (train.max_steps < 1)
    return InvalidArgument("TrainSpec: max_steps: expected at least 1, got ", train.max_steps);
  if (eval.steps < 0)
    return InvalidArgument("EvalSpec: steps: expected at least 0, got ", eval.steps);
  const std::pair<const char*, double> delays[] = {{"start_delay_secs", eval.start_delay_secs},
                                                   {"throttle_secs", eval.throttle_secs}};
  for (const auto& [name, value] : delays) {
    if (std::isfinite(value) && value >= 0 && value <= 1e9) continue;
    return InvalidArgument("EvalSpec: ", name, ": expected 0 to 1e9 seconds, got ", value);
  }
  return OkStatus();
}

// The state of one run of an Estimator in this task.
struct Run {
  CompiledModel compiled;
  config::TrainingConfig config;
  train::JobInputs inputs;

  CompiledData& state() { return Access::Data(compiled); }
  const cluster::TfConfig& tf_config() { return state().strategy().tf_config; }
};

// Copies the settings of the RunConfig to the config.
void TakeRunConfig(const RunConfig& from, config::TrainingConfig& config) {
  config.model_dir = from.model_dir;
  config.save_checkpoints_steps = from.save_checkpoints_steps;
  config.save_checkpoints_secs = from.save_checkpoints_secs;
  config.keep_checkpoint_max = from.keep_checkpoint_max;
  config.save_summary_steps = from.save_summary_steps;
  config.log_step_count_steps = from.log_step_count_steps;
  config.epochs = 0;
}

StatusOr<Run> Begin(const EstimatorData& estimator, int64_t max_steps) {
  RETURN_IF_ERROR(estimator.invalid);
  const Session session(estimator.config.train_distribute, estimator.config.session);
  const Result<CompiledModel> compiled = session.Compile(estimator.model, estimator.options);
  if (!compiled.ok()) return FromPublic(compiled.status());
  Run run{*compiled, Access::Data(*compiled).config, {}};
  TakeRunConfig(estimator.config, run.config);
  run.config.max_steps = max_steps;
  run.inputs.model = Access::Data(estimator.model).model;
  return run;
}

// Returns this task's position among the tasks that read their own examples.
InputContext ContextOf(const cluster::TfConfig& tf_config) {
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (!HasServers(tf_config) || tasks == 0) return {};
  return {.num_input_pipelines = tasks,
          .input_pipeline_id = cluster::TrainingRank(tf_config, tf_config.task)};
}

// Calls the input function for training, and sets the batch size.
tfjob::Status OpenTraining(const InputFunction& input_fn, Run& run) {
  const cluster::TfConfig& tf_config = run.tf_config();
  ASSIGN_OR_RETURN(const InputBatches input,
                   CallInput(input_fn, "TrainSpec", ContextOf(tf_config)));
  run.config.data.shuffle = input.shuffle;
  run.inputs.own_examples = HasServers(tf_config);
  if (run.inputs.own_examples) {
    run.config.batch_size = input.batch_size;
  } else {
    const int64_t replicas = run.config.strategy.devices * cluster::TrainingTaskCount(tf_config);
    RETURN_IF_ERROR(CheckBatchSize("TrainSpec: input_fn: the batch_size of all replicas together",
                                   input.batch_size * std::max<int64_t>(replicas, 1)));
    run.config.global_batch_size = input.batch_size * std::max<int64_t>(replicas, 1);
  }
  ASSIGN_OR_RETURN(run.inputs.train, OpenDataset(input.examples, train::Split::kTrain,
                                                 *run.inputs.model, run.config));
  // If the model does not state the shapes of its inputs, the data determine them.
  ASSIGN_OR_RETURN(const strategy::ModelDefinition definition,
                   train::DefineModel(run.config, train::Split::kTrain, *run.inputs.train,
                                      cluster::TrainingTaskCount(tf_config), *run.inputs.model));
  RETURN_IF_ERROR(run.state().Build(definition.build.features));
  run.inputs.start = run.state().values;
  run.config.model = {};  // Build has already read the model's files
  return OkStatus();
}

// Calls the input function for the evaluation.
tfjob::Status OpenEvaluation(const EvalSpec& spec, Run& run) {
  ASSIGN_OR_RETURN(const InputBatches input, CallInput(spec.input_fn, "EvalSpec", {}));
  run.config.eval = {.batch_size = input.batch_size,
                     .steps = spec.steps,
                     .start_delay_secs = spec.start_delay_secs,
                     .throttle_secs = spec.throttle_secs};
  ASSIGN_OR_RETURN(run.inputs.eval,
                   OpenDataset(input.examples, train::Split::kEval, *run.inputs.model, run.config));
  return OkStatus();
}

// Trains in this process. If no other task trains and there are evaluation data, also evaluates
// checkpoints. Returns the result of the last evaluation, or no metrics if there was none.
StatusOr<Metrics> TrainHere(Run& run) {
  RETURN_IF_ERROR(BeginRun(run.tf_config()).status());
  Metrics last;
  const bool interleaves = IsAlone(run.tf_config()) && run.inputs.eval != nullptr;
  const auto source = run.inputs.eval;
  if (interleaves) {
    run.inputs.eval = nullptr;  // the run would otherwise evaluate the last state once more
    run.config.data.eval = {};
  }
  train::TaskOptions task = TaskOptionsOf(run.state(), run.config);
  task.inputs = run.inputs;
  task.on_evaluation = [&last](int64_t step, const auto& values) { last = WithStep(values, step); };
  RETURN_IF_ERROR(
      UntilSignal(run.state().session->options, [&](const StopSource& stop) -> tfjob::Status {
        train::TaskContext context(std::move(task), stop, RealClock());
        if (!interleaves) return train::RunTask(context);
        const double throttle = run.config.eval.throttle_secs;
        LocalEvaluations evaluations(context, source,
                                     Duration(static_cast<int64_t>(throttle * 1e6)));
        return train::RunTask(context, &evaluations);
      }));
  return last;
}

// Runs a ps or an evaluator until the job has ended.
tfjob::Status RunUntilTheEnd(Run& run) {
  train::TaskOptions task = TaskOptionsOf(run.state(), run.config);
  task.inputs = run.inputs;
  return RunUntilJobEnds(std::move(task), run.state().session->options);
}

StatusOr<Metrics> RunRole(const EstimatorData& estimator, const TrainSpec& train_spec,
                          const EvalSpec& eval_spec) {
  RETURN_IF_ERROR(CheckSpecs(train_spec, eval_spec));
  ASSIGN_OR_RETURN(Run run, Begin(estimator, train_spec.max_steps));
  const cluster::TfConfig& tf_config = run.tf_config();
  const cluster::Role role = cluster::RoleOf(tf_config);
  if (role == cluster::Role::kParameterServer) return RunUntilTheEnd(run);
  if (role == cluster::Role::kEvaluator) {
    RETURN_IF_ERROR(OpenEvaluation(eval_spec, run));
    return RunUntilTheEnd(run);
  }
  RETURN_IF_ERROR(OpenTraining(train_spec.input_fn, run));
  const bool evaluates = role == cluster::Role::kChief && tf_config.cluster.size("evaluator") == 0;
  if (evaluates) RETURN_IF_ERROR(OpenEvaluation(eval_spec, run));
  return TrainHere(run);
}

// Returns the step at which training stops, or nullopt if the newest checkpoint has reached it.
StatusOr<std::optional<int64_t>> LastStep(const std::string& model_dir,
                                          const EstimatorTrainOptions& options) {
  if ((options.steps > 0) == (options.max_steps > 0) || options.steps < 0 || options.max_steps < 0)
    return InvalidArgument("Train: expected either steps or max_steps of at least 1, got ",
                           options.steps, " and ", options.max_steps);
  int64_t start = 0;
  ASSIGN_OR_RETURN(const auto newest, io::LatestCheckpoint(model_dir));
  if (newest) start = newest->step;
  if (options.steps > (int64_t{1} << 53) - start)
    return InvalidArgument("Train: steps: expected fewer steps, got ", options.steps);
  const int64_t last = options.steps > 0 ? start + options.steps : options.max_steps;
  return last > start ? std::optional<int64_t>(last) : std::nullopt;
}

tfjob::Status TrainAlone(const EstimatorData& estimator, const InputFunction& input_fn,
                         const EstimatorTrainOptions& options) {
  RETURN_IF_ERROR(estimator.invalid);
  if (!IsAlone(Access::Data(estimator.config.train_distribute).tf_config)) {
    return FailedPrecondition(
        "Train: this process is ", estimator.config.train_distribute.task_type(), " ",
        estimator.config.train_distribute.task_index(), " of a job; use TrainAndEvaluate");
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> last,
                   LastStep(estimator.config.model_dir, options));
  if (!last) return OkStatus();
  ASSIGN_OR_RETURN(Run run, Begin(estimator, *last));
  RETURN_IF_ERROR(OpenTraining(input_fn, run));
  return TrainHere(run).status();
}

}  // namespace

Status Estimator::Train(const InputFunction& input_fn, const EstimatorTrainOptions& options) const {
  return ToPublic(TrainAlone(*data_, input_fn, options));
}

Result<Metrics> TrainAndEvaluate(const Estimator& estimator, const TrainSpec& train_spec,
                                 const EvalSpec& eval_spec) {
  return ToPublic(RunRole(Access::Data(estimator), train_spec, eval_spec));
}

}  // namespace tfjob::api
