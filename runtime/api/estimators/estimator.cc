#include "runtime/api/estimator.h"

#include <stdlib.h>

#include <cmath>
#include <utility>

#include "runtime/api/compiled_state.h"
#include "runtime/api/estimators/estimator_data.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::api {
namespace {

constexpr Logger kEstimatorLog("estimator");

tfjob::Status AtLeast(const char* name, double least, double value) {
  if (value >= least && std::isfinite(value)) return OkStatus();
  return InvalidArgument("RunConfig: ", name, ": expected a finite number of at least ", least,
                         ", got ", value);
}

tfjob::Status CheckRunConfig(const RunConfig& config) {
  RETURN_IF_ERROR(FromPublic(config.train_distribute.status()));
  if (config.save_checkpoints_steps && config.save_checkpoints_secs) {
    return InvalidArgument(
        "RunConfig: expected save_checkpoints_steps or save_checkpoints_secs, got both; remove "
        "one");
  }
  const auto steps = static_cast<double>(config.save_checkpoints_steps.value_or(1));
  RETURN_IF_ERROR(AtLeast("save_checkpoints_steps", 1, steps));
  RETURN_IF_ERROR(AtLeast("save_checkpoints_secs", 0, config.save_checkpoints_secs.value_or(0)));
  RETURN_IF_ERROR(
      AtLeast("keep_checkpoint_max", 0, static_cast<double>(config.keep_checkpoint_max)));
  RETURN_IF_ERROR(AtLeast("save_summary_steps", 0, static_cast<double>(config.save_summary_steps)));
  RETURN_IF_ERROR(
      AtLeast("log_step_count_steps", 0, static_cast<double>(config.log_step_count_steps)));
  RETURN_IF_ERROR(FromPublic(config.eval_distribute.status()));
  if (Access::Data(config.eval_distribute).config.kind == config::StrategyKind::kOneDevice)
    return OkStatus();
  return Unimplemented("RunConfig: eval_distribute: evaluations use one device; expected ",
                       "Strategy::OneDevice(), got ", config.eval_distribute.name());
}

// Creates a temporary folder. Returns InvalidArgument in a job, because the tasks of a job need a
// shared folder.
StatusOr<std::string> TemporaryFolder(const Strategy& strategy) {
  if (!Access::Data(strategy).tf_config.cluster.empty()) {
    return InvalidArgument(
        "RunConfig: model_dir: expected the folder of the checkpoints, which all tasks of the job ",
        "share, but it is missing");
  }
  std::string folder = GetEnv("TMPDIR").value_or("/tmp") + "/estimator-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return ErrnoStatus(errno, StrCat("RunConfig: model_dir: cannot create ", folder));
  kEstimatorLog.Warning("model_dir is a temporary folder", {{"folder", folder}});
  return folder;
}

StatusOr<EstimatorData> Checked(const Model& model, const CompileOptions& options,
                                RunConfig config) {
  RETURN_IF_ERROR(FromPublic(model.status()));
  RETURN_IF_ERROR(CheckRunConfig(config));
  if (config.model_dir.empty()) {
    ASSIGN_OR_RETURN(config.model_dir, TemporaryFolder(config.train_distribute));
  }
  return EstimatorData{model, options, std::move(config), OkStatus()};
}

// Returns the compiled model for evaluations. The model has initial values if the shapes of its
// inputs are known, and otherwise no values.
StatusOr<CompiledModel> CompiledForEvaluation(const EstimatorData& estimator) {
  RETURN_IF_ERROR(estimator.invalid);
  const Session session(estimator.config.eval_distribute, estimator.config.session);
  const Result<CompiledModel> made = session.Compile(estimator.model, estimator.options);
  if (!made.ok()) return FromPublic(made.status());
  return *made;
}

// Creates the variables of a model that does not state their shapes. The examples determine the
// shapes.
tfjob::Status BuildFor(const Dataset& examples, CompiledData& state) {
  config::TrainingConfig config = state.config;
  const model::Model& model = state.internal_model();
  ASSIGN_OR_RETURN(const auto source, OpenDataset(examples, train::Split::kEval, model, config));
  ASSIGN_OR_RETURN(const strategy::ModelDefinition definition,
                   train::DefineModel(config, train::Split::kEval, *source, 1, model));
  return state.Build(definition.build.features);
}

StatusOr<Metrics> EvaluateNewest(const EstimatorData& estimator, const InputFunction& input_fn,
                                 const EstimatorEvaluateOptions& options) {
  ASSIGN_OR_RETURN(CompiledModel compiled, CompiledForEvaluation(estimator));
  ASSIGN_OR_RETURN(const InputBatches input, CallInput(input_fn, "Evaluate", {}));
  CompiledData& state = Access::Data(compiled);
  if (state.values == nullptr) RETURN_IF_ERROR(BuildFor(input.examples, state));
  RETURN_IF_ERROR(FromPublic(compiled.LoadCheckpoint(estimator.config.model_dir)));
  const Result<Metrics> measured =
      compiled.Evaluate(input.examples, {.batch_size = input.batch_size, .steps = options.steps});
  if (!measured.ok()) return FromPublic(measured.status());
  return WithStep(measured->values(), compiled.step());
}

StatusOr<CompiledModel> NewestModel(const EstimatorData& estimator) {
  ASSIGN_OR_RETURN(CompiledModel compiled, CompiledForEvaluation(estimator));
  RETURN_IF_ERROR(FromPublic(compiled.LoadCheckpoint(estimator.config.model_dir)));
  return compiled;
}

}  // namespace

const EstimatorData& Access::Data(const Estimator& estimator) {
  return *estimator.data_;
}

Estimator Access::MakeEstimator(EstimatorData data) {
  return Estimator(std::make_shared<const EstimatorData>(std::move(data)));
}

Estimator InvalidEstimator(const RunConfig& config, tfjob::Status error) {
  EstimatorData invalid{{}, {}, config, std::move(error)};
  invalid.config.model_dir.clear();
  return Access::MakeEstimator(std::move(invalid));
}

StatusOr<InputBatches> CallInput(const InputFunction& input_fn, const char* name,
                                 const InputContext& context) {
  if (!input_fn)
    return InvalidArgument(name, ": input_fn: expected a function that returns the examples");
  const Result<InputBatches> input = input_fn(context);
  if (!input.ok()) return Annotate(FromPublic(input.status()), StrCat(name, ": input_fn"));
  RETURN_IF_ERROR(
      Annotate(CheckBatchSize("batch_size", input->batch_size), StrCat(name, ": input_fn")));
  return *input;
}

Metrics WithStep(std::vector<std::pair<std::string, double>> values, int64_t step) {
  values.emplace_back("global_step", static_cast<double>(step));
  return Metrics(std::move(values));
}

Estimator::Estimator(const Model& model, const CompileOptions& options, const RunConfig& config) {
  StatusOr<EstimatorData> made = Checked(model, options, config);
  data_ = made.ok() ? std::make_shared<const EstimatorData>(*std::move(made))
                    : InvalidEstimator(config, made.status()).data_;
}

Result<Metrics> Estimator::Evaluate(const InputFunction& input_fn,
                                    const EstimatorEvaluateOptions& options) const {
  return ToPublic(EvaluateNewest(*data_, input_fn, options));
}

Result<CompiledModel> Estimator::Latest() const {
  return ToPublic(NewestModel(*data_));
}

const std::string& Estimator::model_dir() const& {
  return data_->config.model_dir;
}

Estimator ModelToEstimator(const Model& model, const CompileOptions& options,
                           const RunConfig& config) {
  return Estimator(model, options, config);
}

}  // namespace tfjob::api
