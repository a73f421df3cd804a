// Implements CompiledModel, apart from Fit and Predict.
#include "runtime/train/job/compiled_model.h"

#include <algorithm>
#include <utility>

#include "runtime/api/compiled_state.h"
#include "runtime/base/file.h"
#include "runtime/model/any_length.h"
#include "runtime/model/keras/weights.h"
#include "runtime/model/keras/write.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/model_dir/checkpoint.h"

namespace tfjob::api {
namespace {

tfjob::Status CheckValue(const state::Variable& variable, const tfjob::Tensor& value) {
  if (value.dtype() == variable.dtype && value.shape() == variable.shape) return OkStatus();
  return InvalidArgument("variable ", variable.name, ": expected ", tfjob::Name(variable.dtype),
                         " ", variable.shape.ToString(), ", got ", tfjob::Name(value.dtype()), " ",
                         value.shape().ToString());
}

constexpr int kKeptCheckpoints = 5;
StatusOr<Metrics> EvaluateOn(CompiledData& state, const Dataset& test,
                             const EvaluateOptions& options) {
  RETURN_IF_ERROR(state.ExpectIdle());
  state.on_batches = {};
  RETURN_IF_ERROR(CheckBatchSize("batch_size", options.batch_size));
  if (options.steps < 0) return InvalidArgument("steps: expected at least 0, got ", options.steps);
  config::TrainingConfig config = state.config;
  config.eval.batch_size = options.batch_size;
  config.eval.steps = options.steps;
  RETURN_IF_ERROR(
      SetBatchKeys(options.bucket_by_length, options.mask_tokens, options.augment, config));
  const model::Model& model = state.internal_model();
  ASSIGN_OR_RETURN(auto source, OpenDataset(test, train::Split::kEval, model, config));
  ASSIGN_OR_RETURN(const strategy::ModelDefinition definition,
                   train::DefineModel(config, train::Split::kEval, *source, 1, model));
  RETURN_IF_ERROR(state.Build(definition.build.features));
  RETURN_IF_ERROR(state::CheckFits(*state.values, definition.state));
  train::TaskContext context(TaskOptionsOf(state, config), NoStop(), RealClock());
  ASSIGN_OR_RETURN(const exec::Device device, context.device());
  ASSIGN_OR_RETURN(const auto evaluation,
                   train::Evaluation::Create(config, definition, std::move(source), device));
  ASSIGN_OR_RETURN(const strategy::MetricTotals totals, evaluation->Run(*state.values, NoStop()));
  return Metrics(train::NamedValues(evaluation->definition(), totals));
}

// Assigns the values to the variables with the same names.
tfjob::Status ReplaceValues(CompiledData& state, const VariableValues& values) {
  RETURN_IF_ERROR(state.ExpectBuilt());
  state::Snapshot changed = *state.values;
  for (size_t i = 0; i < changed.variables.size(); ++i) {
    const state::Variable& variable = state.definition->state.variables[i];
    const auto value = values.find(variable.name);
    if (value == values.end()) continue;
    RETURN_IF_ERROR(CheckValue(variable, value->second));
    changed.variables[i].value = value->second.Clone();
  }
  for (const auto& [name, value] : values) {
    const auto& variables = state.definition->state.variables;
    const bool known =
        std::ranges::any_of(variables, [&](const auto& variable) { return variable.name == name; });
    if (!known) {
      return InvalidArgument("the model has no variable ", name,
                             "; Weights returns the names of its variables");
    }
  }
  state.values = std::make_shared<const state::Snapshot>(std::move(changed));
  return OkStatus();
}

tfjob::Status WriteCheckpoint(const CompiledData& state, const std::string& folder) {
  RETURN_IF_ERROR(state.ExpectBuilt());
  RETURN_IF_ERROR(MakeDirectories(folder));
  return train::SaveCheckpoint(folder, state.definition->state, *state.values, kKeptCheckpoints,
                               RealClock().Now());
}

tfjob::Status ReadWeights(CompiledData& state, const std::string& path,
                          const LoadOptions& options) {
  RETURN_IF_ERROR(state.ExpectBuilt());
  const strategy::ModelDefinition& definition = *state.definition;
  ASSIGN_OR_RETURN(const keras::Weights weights,
                   keras::OpenWeights(path, definition.model, definition.variables));
  ASSIGN_OR_RETURN(auto values, keras::ReadValues(weights, definition.variables, options.skip));
  state::Snapshot changed = *state.values;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i]) changed.variables[i].value = *std::move(values[i]);
  }
  state.values = std::make_shared<const state::Snapshot>(std::move(changed));
  return OkStatus();
}

tfjob::Status ReadCheckpoint(CompiledData& state, const std::string& folder) {
  RETURN_IF_ERROR(state.ExpectBuilt());
  ASSIGN_OR_RETURN(auto saved, train::LoadLatestCheckpoint(folder, state.definition->state));
  if (!saved) return NotFound(folder, " has no checkpoint");
  state.values = std::make_shared<const state::Snapshot>(*std::move(saved));
  // In a job, this task may be the only one that reads the checkpoint. The first step then sends
  // the rate to the others with the values; the optimizers of all tasks must be equal until then.
  if (IsAlone(state.strategy().tf_config)) UseRateOfValues(state);
  return OkStatus();
}

StatusOr<std::vector<std::pair<std::string, Tensor>>> NamedWeights(const CompiledData& state) {
  RETURN_IF_ERROR(state.ExpectBuilt());
  std::vector<std::pair<std::string, Tensor>> weights;
  for (size_t i = 0; i < state.definition->variables.size(); ++i) {
    // Copy the array: programs may write to it, but a snapshot must not change.
    weights.emplace_back(state.definition->variables[i].name,
                         Access::MakeTensor(state.values->variables[i].value.Clone()));
  }
  return weights;
}

// Assigns values to the variables whose initial values come from the files of the model's parts.
tfjob::Status SetValuesOfFiles(const VariableValues& values,
                               const strategy::ModelDefinition& definition,
                               state::Snapshot& snapshot) {
  for (size_t i = 0; i < snapshot.variables.size(); ++i) {
    const state::Variable& variable = definition.state.variables[i];
    const auto value = values.find(variable.name);
    if (value == values.end()) continue;
    RETURN_IF_ERROR(CheckValue(variable, value->second));
    snapshot.variables[i] =
        state::VariableState::Initial(variable, definition.state.optimizer, value->second.Clone());
  }
  return OkStatus();
}

}  // namespace

tfjob::Status CheckBatchSize(const char* name, int64_t batch_size) {
  if (batch_size >= 1 && batch_size <= kMostBatch) return OkStatus();
  return InvalidArgument(name, ": expected 1 to ", kMostBatch, ", got ", batch_size);
}

std::vector<tfjob::Tensor> ValuesOf(const state::Snapshot& snapshot) {
  std::vector<tfjob::Tensor> values;
  for (const state::VariableState& variable : snapshot.variables) values.push_back(variable.value);
  return values;
}

tfjob::Status CompiledData::Build(const std::vector<model::TensorType>& features) {
  if (values != nullptr) return OkStatus();
  ASSIGN_OR_RETURN(strategy::ModelDefinition made,
                   train::DefineState(config, internal_model(), features));
  ASSIGN_OR_RETURN(state::Snapshot start, train::StartState(config, made));
  if (const auto& of_files = Access::Data(model).values; of_files != nullptr)
    RETURN_IF_ERROR(SetValuesOfFiles(*of_files, made, start));
  definition = std::move(made);
  values = std::make_shared<const state::Snapshot>(std::move(start));
  config.model = {};  // the model's files have already been read
  return OkStatus();
}

tfjob::Status CompiledData::Settle() const {
  if (newest.get() == nullptr) return OkStatus();
  ASSIGN_OR_RETURN(values, newest.get()->Take());
  newest.set(nullptr);
  common.set(values);
  return OkStatus();
}

tfjob::Status CompiledData::ExpectIdle() const {
  RETURN_IF_ERROR(ExpectNoFit());
  return Settle();
}

tfjob::Status CompiledData::ExpectNoFit() const {
  if (!training) return OkStatus();
  return FailedPrecondition("Fit is running, so the values of model ", model.name(),
                            " are those from before Fit; use FitControl::Copy in callbacks");
}

tfjob::Status CompiledData::ExpectBuilt() const {
  RETURN_IF_ERROR(ExpectIdle());
  if (values != nullptr) return OkStatus();
  return FailedPrecondition("the variables of model ", model.name(),
                            " have no values yet, because ",
                            "the shapes of its inputs are unknown; begin the model with ",
                            "Input{.shape = …}, or call Fit, Evaluate or Predict first");
}

bool IsAlone(const cluster::TfConfig& tf_config) {
  return cluster::RoleOf(tf_config) == cluster::Role::kChief &&
         cluster::TrainingTaskCount(tf_config) == 1 && !HasServers(tf_config) &&
         tf_config.cluster.size("evaluator") == 0;
}

train::TaskOptions TaskOptionsOf(const StrategyData& strategy, config::TrainingConfig config) {
  return {.config = std::move(config),
          .inputs = {},
          .tf_config = strategy.tf_config,
          .job = strategy.job,
          .credentials = strategy.credentials,
          .lone_address = strategy.lone_address,
          .device = strategy.device,
          .grace_period = strategy.grace_period,
          .before_evaluation = nullptr,
          .on_evaluation = nullptr};
}

void UseRateOfValues(CompiledData& state) {
  const std::optional<state::LearningRate>& rate = state.values->learning_rate;
  if (!rate || !state::CheckMaySet(rate->rate, state.definition->state.optimizer).ok()) return;
  state.config.optimizer.learning_rate = rate->rate;
  state.definition->state.optimizer.learning_rate = rate->rate;
}

tfjob::Status WriteModel(const std::string& path, const config::TrainingConfig& config,
                         const strategy::ModelDefinition& definition,
                         const state::Snapshot& values) {
  const std::vector<tfjob::Tensor> tensors = ValuesOf(values);
  keras::WholeModel whole{definition.model, definition.variables, tensors};
  // A model without a loss is trained only by functions. Omit the settings of compile().
  if (config.loss.name.empty() && config.outputs == nullptr) return keras::Write(path, whole);
  ASSIGN_OR_RETURN(const auto run, train::CompileForKeras(config, definition, values));
  if (run) {
    whole.compiled.emplace(keras::CompiledModel{*run->compile_config, run->optimizer,
                                                run->state ? &*run->state : nullptr});
  }
  return keras::Write(path, whole);
}

namespace {

// Ends the process if Fit is running: the callbacks of Fit must neither copy nor replace the model.
void ExpectIdleOrExit(const std::shared_ptr<CompiledData>& data) {
  if (data != nullptr) ToPublic(data->ExpectNoFit()).value();
}

std::shared_ptr<CompiledData> CopyUnlessTraining(const std::shared_ptr<CompiledData>& data) {
  if (data != nullptr) ToPublic(data->ExpectIdle()).value();
  return data == nullptr ? nullptr : std::make_shared<CompiledData>(*data);
}

}  // namespace

CompiledModel Access::MakeCompiled(std::shared_ptr<CompiledData> data) {
  return CompiledModel(std::move(data));
}

CompiledModel::CompiledModel(std::shared_ptr<CompiledData> data) : data_(std::move(data)) {}
CompiledModel::CompiledModel(const CompiledModel& other) : data_(CopyUnlessTraining(other.data_)) {}
CompiledModel::CompiledModel(CompiledModel&& other) noexcept {
  ExpectIdleOrExit(other.data_);
  data_ = std::move(other.data_);
}
CompiledModel& CompiledModel::operator=(const CompiledModel& other) {
  ExpectIdleOrExit(data_);
  if (this != &other) data_ = CopyUnlessTraining(other.data_);
  return *this;
}
CompiledModel& CompiledModel::operator=(CompiledModel&& other) noexcept {
  ExpectIdleOrExit(data_);
  ExpectIdleOrExit(other.data_);
  data_ = std::move(other.data_);
  return *this;
}
CompiledModel::~CompiledModel() = default;

Result<Metrics> CompiledModel::Evaluate(const Dataset& test, const EvaluateOptions& options) {
  return ToPublic(EvaluateOn(*data_, test, options));
}

Status CompiledModel::Save(const std::string& path) const {
  const tfjob::Status built = data_->ExpectBuilt();
  if (!built.ok()) return ToPublic(built);
  // The settings lack the rate of a Fit that another one follows.
  CompiledData copy = *data_;
  UseRateOfValues(copy);
  return ToPublic(WriteModel(path, copy.config, *copy.definition, *copy.values));
}

Status CompiledModel::SaveCheckpoint(const std::string& folder) const {
  return ToPublic(WriteCheckpoint(*data_, folder));
}

Status CompiledModel::LoadWeights(const std::string& path, const LoadOptions& options) {
  return ToPublic(ReadWeights(*data_, path, options));
}

Status CompiledModel::SetWeights(const std::map<std::string, Tensor>& values) {
  VariableValues given;
  for (const auto& [name, value] : values) {
    if (!value.present())
      return ToPublic(InvalidArgument("variable ", name, ": there is no array"));
    given.emplace(name, Access::Data(value));
  }
  return ToPublic(ReplaceValues(*data_, given));
}

Status CompiledModel::LoadCheckpoint(const std::string& folder) {
  return ToPublic(ReadCheckpoint(*data_, folder));
}

Result<std::vector<std::pair<std::string, Tensor>>> CompiledModel::Weights() const {
  return ToPublic(NamedWeights(*data_));
}

const History& CompiledModel::history() const& {
  return data_->history;
}

int64_t CompiledModel::step() const {
  if (const LiveValues* newest = data_->newest.get()) return newest->step();
  return data_->values == nullptr ? 0 : data_->values->global_step;
}

const Model& CompiledModel::model() const& {
  return data_->model;
}

Result<std::string> CompiledModel::Summary() const {
  if (!data_->definition) return data_->model.Summary();
  return ToPublic(model::Summary(data_->definition->model, data_->definition->build.features));
}

}  // namespace tfjob::api
