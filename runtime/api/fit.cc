#include "runtime/api/fit.h"

#include <algorithm>
#include <utility>

#include "runtime/api/compiled_state.h"

namespace tfjob::api {
namespace {

void AddTotals(const strategy::MetricTotals& batch, strategy::MetricTotals& totals) {
  totals.loss_sum += batch.loss_sum;
  totals.examples += batch.examples;
  totals.metric_sums.resize(batch.metric_sums.size());
  for (size_t i = 0; i < batch.metric_sums.size(); ++i)
    totals.metric_sums[i] += batch.metric_sums[i];
}

}  // namespace

FitRun::FitRun(const FitOptions& options, const FitPlan& plan, const config::TrainingConfig& config,
               train::TaskContext& context)
    : options_(options),
      plan_(plan),
      config_(config),
      context_(context),
      bar_(options.verbose, context.clock()) {
  for (const Callback& callback : options.callbacks)
    wants_batches_ = wants_batches_ || callback.hooks().WantsBatches();
}

FitRun::~FitRun() = default;

int64_t FitRun::step() const {
  return run_->global_step();
}

Status FitRun::StopTraining() {
  const tfjob::Status ended = run_->EndHere();
  if (ended.ok()) history_.stopped = true;
  return ToPublic(ended);
}

StatusOr<std::shared_ptr<const state::Snapshot>> FitRun::Snapshot() {
  ASSIGN_OR_RETURN(state::Snapshot snapshot, run_->strategy().TakeSnapshot());
  return std::make_shared<const state::Snapshot>(std::move(snapshot));
}

Result<std::shared_ptr<const FitValues>> FitRun::Values() {
  auto snapshot = Snapshot();
  if (!snapshot.ok()) return ToPublic(snapshot.status());
  return std::shared_ptr<const FitValues>(
      std::make_shared<const FitValues>(FitValues{*std::move(snapshot)}));
}

Status FitRun::Save(const std::string& path) {
  const auto snapshot = Snapshot();
  if (!snapshot.ok()) return ToPublic(snapshot.status());
  return ToPublic(WriteModel(path, config_, run_->definition(), **snapshot));
}

template <typename Call>
tfjob::Status FitRun::Each(const Call& call) {
  for (const Callback& callback : options_.callbacks) {
    const Status called = call(callback.hooks());
    if (called.ok()) continue;
    auto snapshot = Snapshot();
    if (snapshot.ok()) result_ = *std::move(snapshot);
    return FromPublic(called);
  }
  return OkStatus();
}

tfjob::Status FitRun::OnStart(train::Trainer& run) {
  run_ = &run;
  const int64_t made = run.global_step() - plan_.start_step;
  if (made < 0) {
    return FailedPrecondition("BackupAndRestore: ", config_.model_dir, " has a checkpoint of step ",
                              run.global_step(), ", but this Fit starts at step ", plan_.start_step,
                              "; use another folder");
  }
  epoch_ = options_.initial_epoch + made / plan_.steps_per_epoch;
  steps_ = made % plan_.steps_per_epoch;
  if (plan_.validation != nullptr && validation_ == nullptr) {
    ASSIGN_OR_RETURN(const exec::Device device, context_.device());
    ASSIGN_OR_RETURN(validation_, train::Evaluation::Create(config_, run.definition(),
                                                            plan_.validation, device));
  }
  if (!std::exchange(begun_, true))
    RETURN_IF_ERROR(Each([&](CallbackHooks& hooks) { return hooks.OnTrainBegin(*this); }));
  return run.global_step() < run.total_steps() ? BeginEpoch() : OkStatus();
}

tfjob::Status FitRun::BeginEpoch() {
  totals_ = {};
  bar_.BeginEpoch(epoch_, options_.epochs, steps_, plan_.steps_per_epoch);
  return Each([&](CallbackHooks& hooks) { return hooks.OnEpochBegin(*this, epoch_); });
}

Metrics FitRun::EpochSoFar() const {
  return Metrics(train::NamedValues(run_->definition(), totals_));
}

tfjob::Status FitRun::OnStep(train::Trainer& run, const strategy::MetricTotals& batch,
                             const strategy::StepOutcome& outcome) {
  AddTotals(batch, totals_);
  const int64_t made = outcome.global_step - plan_.start_step;
  const int64_t batch_number = steps_;
  steps_ = made - (epoch_ - options_.initial_epoch) * plan_.steps_per_epoch;
  if (bar_.Due()) bar_.Update(std::min(steps_, plan_.steps_per_epoch), EpochSoFar());
  if (wants_batches_) {
    const Metrics metrics = EpochSoFar();
    RETURN_IF_ERROR(Each([&](CallbackHooks& hooks) {
      return hooks.WantsBatches() ? hooks.OnBatchEnd(*this, batch_number, metrics) : Status();
    }));
  }
  const bool last = run.global_step() >= run.total_steps();
  if (steps_ < plan_.steps_per_epoch && !last) return OkStatus();
  RETURN_IF_ERROR(EndEpoch());
  ++epoch_;
  steps_ = 0;
  return run.global_step() < run.total_steps() ? BeginEpoch() : OkStatus();
}

tfjob::Status FitRun::Validate(std::vector<std::pair<std::string, double>>& values) {
  if (validation_ == nullptr || (epoch_ + 1) % options_.validation_freq != 0) return OkStatus();
  ASSIGN_OR_RETURN(const auto snapshot, Snapshot());
  ASSIGN_OR_RETURN(const strategy::MetricTotals totals,
                   validation_->Run(*snapshot, context_.stop()));
  for (const auto& [name, value] : train::NamedValues(validation_->definition(), totals))
    values.emplace_back(StrCat("val_", name), value);
  return OkStatus();
}

tfjob::Status FitRun::EndEpoch() {
  std::vector<std::pair<std::string, double>> values = EpochSoFar().values();
  RETURN_IF_ERROR(Validate(values));
  history_.epoch.push_back(epoch_);
  for (const auto& [name, value] : values) history_.values[name].push_back(value);
  const Metrics metrics(std::move(values));
  bar_.EndEpoch(metrics);
  return Each([&](CallbackHooks& hooks) { return hooks.OnEpochEnd(*this, epoch_, metrics); });
}

tfjob::Status FitRun::OnEnd(train::Trainer& run) {
  run_ = &run;
  if (!context_.stop().requested())
    RETURN_IF_ERROR(Each([&](CallbackHooks& hooks) { return hooks.OnTrainEnd(*this); }));
  ASSIGN_OR_RETURN(state::Snapshot last, run.strategy().TakeSnapshot());
  if (end_with_ != nullptr) last = *end_with_->snapshot;
  state::UseAverages(run.state(), last);
  result_ = std::make_shared<const state::Snapshot>(std::move(last));
  return OkStatus();
}

}  // namespace tfjob::api
