#include "runtime/api/loops/workspace.h"

#include <utility>

#include "runtime/api/loops/task_group.h"
#include "runtime/base/thread_pool.h"
#include "runtime/train/job/make_optimizer.h"

namespace tfjob::api {
namespace {

// Returns the number of devices of the strategy.
int DevicesOf(const config::StrategyConfig& strategy) {
  const bool several = strategy.kind == config::StrategyKind::kMirrored ||
                       strategy.kind == config::StrategyKind::kCentralStorage;
  return several ? static_cast<int>(strategy.devices) : 1;
}

}  // namespace

steps::StepModel StepModelOf(const CompiledData& model, const std::string& prefix) {
  const strategy::ModelDefinition& definition = *model.definition;
  steps::StepModel made{.model = definition.model,
                        .features = definition.build.features,
                        .variables = definition.variables,
                        .prefix = prefix,
                        .optimizer = definition.state.optimizer,
                        .clipping = train::ClippingOf(model.config.optimizer)};
  for (model::VariableSpec& variable : made.variables) variable.name = prefix + variable.name;
  return made;
}

StatusOr<TaskGroup*> Workspace::Group(const StrategyData& strategy,
                                      const config::TrainingConfig& config) {
  ASSIGN_OR_RETURN(const int tasks, TasksOfLoops(strategy));
  if (tasks == 1) return nullptr;
  MutexLock lock(group_mutex_);
  RETURN_IF_ERROR(group_error_);
  if (group_ != nullptr) return group_.get();
  StatusOr<std::shared_ptr<TaskGroup>> made = TaskGroup::Create(strategy, config);
  group_error_ = made.status();
  RETURN_IF_ERROR(group_error_);
  group_ = *std::move(made);
  return group_.get();
}

tfjob::Status Workspace::Prepare(const CompiledData& model) {
  const config::StrategyConfig& strategy = model.config.strategy;
  ASSIGN_OR_RETURN(const int tasks, TasksOfLoops(model.strategy()));
  if (tasks > 1 && strategy.compression != config::Compression::kNone) {
    return Unimplemented("compression: functions send gradients in their own types; use none, or ",
                         "Step instead of functions");
  }
  MutexLock lock(mutex_);
  if (memory_ != nullptr) return OkStatus();
  auto context = std::make_unique<train::TaskContext>(TaskOptionsOf(model, model.config), NoStop(),
                                                      RealClock());
  ASSIGN_OR_RETURN(const exec::Device device, context->device());
  const int threads = device.pool == nullptr ? 1 : device.pool->threads() + 1;
  const int rank = cluster::TrainingRank(context->tf_config(), context->tf_config().task);
  ASSIGN_OR_RETURN(memory_, steps::Memory::Create({.device = device,
                                                   .devices = DevicesOf(strategy),
                                                   .threads = threads,
                                                   .task = tasks > 1 ? rank : 0,
                                                   .tasks = tasks}));
  context_ = std::move(context);
  return OkStatus();
}

int64_t Workspace::NextFunction() {
  MutexLock lock(mutex_);
  return functions_++;
}

StatusOr<std::shared_ptr<LiveModel>> Workspace::Bind(CompiledData& model) {
  if (model.live.get() != nullptr) return model.live.shared();
  MutexLock lock(mutex_);
  auto live = std::make_shared<LiveModel>(model.session->workspace,
                                          StepModelOf(model, StrCat("model ", models_++, "/")),
                                          model.definition->state);
  RETURN_IF_ERROR(memory_->AddVariables(live->model_));
  model.live.set(live);
  return live;
}

// A runner that applies an optimizer may create the optimizer's slots, with initial values. These
// must not replace the model's values, so copy the model's newest values first; the next run loads
// them again.
StatusOr<std::unique_ptr<steps::StepRunner>> Workspace::MakeRunner(
    steps::Definition definition, std::span<CompiledData* const> models) {
  std::vector<CompiledData*> applied;
  for (const steps::Application& application : definition.applications)
    applied.push_back(models[static_cast<size_t>(application.model)]);
  for (CompiledData* const model : applied) {
    RETURN_IF_ERROR(model->ExpectNoFit());
    RETURN_IF_ERROR(model->Settle());
  }
  MutexLock lock(mutex_);
  for (CompiledData* const model : applied) model->live.get()->loaded_ = nullptr;
  return steps::StepRunner::Create(std::move(definition), memory_);
}

StatusOr<steps::Totals> Workspace::PrepareRun(steps::StepRunner& runner,
                                              std::span<CompiledData* const> models, int64_t rows) {
  for (CompiledData* const model : models) {
    RETURN_IF_ERROR(model->ExpectNoFit());
    if (model->newest.get() != model->live.get()) RETURN_IF_ERROR(model->Settle());
  }
  MutexLock lock(mutex_);
  return runner.Prepare(rows);
}

StatusOr<std::vector<tfjob::Tensor>> Workspace::Run(steps::StepRunner& runner,
                                                    std::span<CompiledData* const> models,
                                                    std::span<const tfjob::Tensor> inputs,
                                                    const steps::Totals& totals,
                                                    steps::StepGroup* group) {
  std::vector<int64_t> steps;
  MutexLock lock(mutex_);
  if (group != nullptr) memory_->Connect(group->communicator());
  for (CompiledData* const model : models) {
    LiveModel& live = *model->live.get();
    if (model->newest.get() == nullptr) RETURN_IF_ERROR(live.Load(*memory_, model->values));
    steps.push_back(live.step_);
  }
  StatusOr<std::vector<tfjob::Tensor>> results = runner.Run(inputs, runs_++, steps, totals);
  for (size_t m = 0; m < models.size(); ++m) {
    if (!runner.changes(m)) continue;
    LiveModel& live = *models[m]->live.get();
    if (results.ok() && runner.applies(m)) ++live.step_;
    models[m]->newest.set(models[m]->live.shared());
  }
  return results;
}

tfjob::Status LiveModel::Load(steps::Memory& memory,
                              std::shared_ptr<const state::Snapshot> values) {
  if (loaded_ == values) return OkStatus();
  loaded_ = nullptr;
  RETURN_IF_ERROR(memory.Load(model_, training_, *values));
  step_ = values->global_step;
  loaded_ = std::move(values);
  return OkStatus();
}

StatusOr<std::shared_ptr<const state::Snapshot>> LiveModel::Take() {
  MutexLock lock(workspace_->mutex_);
  ASSIGN_OR_RETURN(state::Snapshot taken,
                   workspace_->memory_->Take(model_, training_, *loaded_, step_));
  loaded_ = std::make_shared<const state::Snapshot>(std::move(taken));
  return loaded_;
}

}  // namespace tfjob::api
