#include "runtime/api/fit/fit.h"

#include <algorithm>
#include <utility>

#include "runtime/api/fit/callback_states.h"
#include "runtime/api/fit/fit_result.h"
#include "runtime/api/fit/job_role.h"
#include "runtime/base/log.h"
#include "runtime/model/build.h"
#include "runtime/model/metrics/metric.h"
#include "runtime/optimizer/schedule.h"
#include "runtime/state/run_failure.h"

namespace tfjob::api {
namespace {

constexpr Logger kFitLog("api");

std::optional<bool> LargerIsBetterOf(const model::Metric& metric) {
  using model::Metric;
  switch (metric.kind) {
    case Metric::kAccuracy:
    case Metric::kBinaryAccuracy:
    case Metric::kCategoricalAccuracy:
    case Metric::kSparseCategoricalAccuracy:
    case Metric::kTopKCategoricalAccuracy:
    case Metric::kSparseTopKCategoricalAccuracy:
    case Metric::kR2Score:
    case Metric::kPrecision:
    case Metric::kRecall:
    case Metric::kAuc:
    case Metric::kTruePositives:
    case Metric::kTrueNegatives:
      return true;
    case Metric::kCustom:
      return std::nullopt;
    case Metric::kPerplexity:
    case Metric::kRootMeanSquaredError:
    case Metric::kFalsePositives:
    case Metric::kFalseNegatives:
      return false;
    case Metric::kLoss:
      // The metric "cosine_similarity" is the negative of the loss of the same name, so larger
      // values of the metric are better.
      return model::Name(metric) == "cosine_similarity";
  }
  return false;
}

// Reads the tables that the strategy keeps on the servers. The tables can be read only during the
// run.
tfjob::Status ReadTables(const state::TrainingState& training, state::Snapshot& snapshot) {
  for (size_t v = 0; v < snapshot.variables.size(); ++v) {
    state::VariableState& variable = snapshot.variables[v];
    for (size_t part = 0; part < variable.streamed.size(); ++part) {
      ASSIGN_OR_RETURN(tfjob::Tensor whole,
                       state::ReadWhole(training.variables[v], *variable.streamed[part]));
      if (part == 0) {
        variable.value = std::move(whole);
      } else {
        variable.slots.push_back(std::move(whole));
      }
    }
    variable.streamed.clear();
  }
  return OkStatus();
}

// Returns the result of a run in which this task has not taken part.
tfjob::Status NeverJoined() {
  return JobOver(
      Cancelled("the job had ended before this task joined it; its model is not trained"));
}

}  // namespace

FitRun::FitRun(const CompiledData& model, const FitOptions& options, const FitPlan& plan,
               const config::TrainingConfig& config, train::TaskContext& context)
    : model_(model),
      options_(options),
      plan_(plan),
      config_(config),
      context_(context),
      bar_(options.verbose, context.clock()),
      servers_(HasServers(context.tf_config())),
      completed_(NeverJoined()) {
  for (const Callback& callback : options.callbacks) {
    wants_batches_ = wants_batches_ || callback.hooks().WantsBatches();
    sets_rate_ = sets_rate_ || callback.hooks().MaySetLearningRate();
  }
}

FitRun::~FitRun() = default;

int64_t FitRun::step() const {
  return run_->global_step();
}

double FitRun::learning_rate() const {
  if (const auto set = run_->strategy().learning_rate()) return set->rate;
  const optimizer::Optimizer& optimizer = run_->state().optimizer;
  return optimizer::RateAt(optimizer.schedule, optimizer.learning_rate, run_->global_step());
}

std::optional<bool> FitRun::LargerIsBetter(const std::string& metric) const {
  constexpr std::string_view kValidation = "val_";
  if (metric == "loss") return false;
  const strategy::ModelDefinition& definition = run_->definition();
  const std::vector<model::MetricFetch> all = model::MetricsOf(definition.model, definition.build);
  const auto found = std::ranges::find(all, metric, &model::MetricFetch::name);
  // Look for the whole name first, because the name of a training metric may also begin with
  // "val_".
  if (found == all.end()) {
    if (!metric.starts_with(kValidation)) return std::nullopt;
    return LargerIsBetter(metric.substr(kValidation.size()));
  }
  // If there are several outputs, their losses precede the metrics.
  const size_t outputs = definition.model.outputs.size();
  const bool loss = outputs > 1 && static_cast<size_t>(found - all.begin()) < outputs;
  return loss ? std::optional<bool>(false) : LargerIsBetterOf(found->metric);
}

Status FitRun::SetLearningRate(double rate) {
  const tfjob::Status accepted = state::CheckMaySet(rate, run_->state().optimizer);
  if (!accepted.ok()) return ToPublic(accepted);
  if (rate_is_set_) return {};
  const tfjob::Status set = run_->strategy().SetLearningRate(rate);
  if (set.ok() && taken_ != nullptr) {
    state::Snapshot changed = *taken_;  // shares the values
    changed.learning_rate = run_->strategy().learning_rate();
    taken_ = std::make_shared<const state::Snapshot>(std::move(changed));
  }
  return ToPublic(set);
}

bool FitRun::HasRateSince(int64_t step) const {
  const std::optional<state::LearningRate> rate = run_->strategy().learning_rate();
  // The rate with which this Fit has started was set by an earlier one.
  return rate && rate != model_.values->learning_rate && rate->step >= step;
}

Status FitRun::StopTraining() {
  const tfjob::Status ended = run_->EndHere();
  if (!ended.ok()) return ToPublic(ended);
  taken_ = nullptr;  // the group may have taken over the state of another task meanwhile
  // If the variables were rolled back, or if this task was asked to stop, the run has not ended.
  if (run_->global_step() < run_->total_steps()) return {};
  stopping_ = true;
  if (run_->global_step() < plan_.last_step) record_.Stop();
  return {};
}

StatusOr<std::shared_ptr<const state::Snapshot>> FitRun::Snapshot() {
  if (taken_ != nullptr) return taken_;
  if (!run_->joined())
    return Unavailable("this task has left the run, so it cannot read the values");
  // Servers accept this request only from the chief, and then all stop at the same step.
  if (servers_ && !is_chief())
    return Unimplemented(
        "the values are on the parameter servers, where only the chief reads them");
  ASSIGN_OR_RETURN(state::Snapshot snapshot, run_->strategy().TakeSnapshot());
  RETURN_IF_ERROR(ReadTables(run_->state(), snapshot));
  taken_ = std::make_shared<const state::Snapshot>(std::move(snapshot));
  return taken_;
}

Result<std::shared_ptr<const FitValues>> FitRun::Values() {
  auto snapshot = Snapshot();
  if (!snapshot.ok()) return ToPublic(snapshot.status());
  return std::shared_ptr<const FitValues>(
      std::make_shared<const FitValues>(FitValues{*std::move(snapshot)}));
}

Result<CompiledModel> FitRun::Copy() {
  auto snapshot = Snapshot();
  if (!snapshot.ok()) return ToPublic(snapshot.status());
  auto copy = std::make_shared<CompiledData>(model_);
  copy->training = false;
  copy->values = *std::move(snapshot);
  UseRateOfValues(*copy);
  return Access::MakeCompiled(std::move(copy));
}

Status FitRun::Save(const std::string& path) {
  const strategy::AnnouncedPhase phase(run_->strategy(), state::WorkPhase::kSaving);
  const Result<CompiledModel> copy = Copy();
  return copy.ok() ? copy->Save(path) : copy.status();
}

template <typename Call>
tfjob::Status FitRun::Each(const Call& call) {
  for (const Callback& callback : options_.callbacks) {
    const Status called = call(callback.hooks());
    if (called.ok()) continue;
    callback_error_ = FromPublic(called);
    // Use the code Aborted, so that the run does not treat the error as one of its own, such as a
    // state::RunFailure.
    return Aborted(called.message());
  }
  return OkStatus();
}

tfjob::Status FitRun::BeginTraining() {
  return Each([&](CallbackHooks& hooks) {
    const Status begun = hooks.OnTrainBegin(*this);
    if (begun.ok()) ++callbacks_begun_;
    return begun;
  });
}

tfjob::Status FitRun::EndTraining() {
  if (std::exchange(ended_, true)) return OkStatus();
  return Each([&](CallbackHooks& hooks) {
    ++callbacks_ended_;
    return hooks.OnTrainEnd(*this);
  });
}

void FitRun::Abort() {
  for (; callbacks_ended_ < callbacks_begun_; ++callbacks_ended_)
    options_.callbacks[callbacks_ended_].hooks().OnTrainAbort();
}

void FitRun::FindPlace(int64_t global_step) {
  const int64_t made = global_step - plan_.start_step;
  epoch_ = options_.initial_epoch + made / plan_.steps_per_epoch;
  steps_ = made % plan_.steps_per_epoch;
  epochs_begun_ = std::max(epochs_begun_, epoch_ - options_.initial_epoch + (steps_ > 0 ? 1 : 0));
}

tfjob::Status FitRun::OnStart(train::Trainer& run) {
  run_ = &run;
  taken_ = result_ = nullptr;
  if (run.global_step() < plan_.start_step) {
    return FailedPrecondition("BackupAndRestore: ", config_.model_dir, " has a checkpoint of step ",
                              run.global_step(), ", but this Fit starts at step ", plan_.start_step,
                              "; use another folder");
  }
  FindPlace(run.global_step());
  if (!begun_ && !config_.model_dir.empty() && run.global_step() >= plan_.last_step) {
    kFitLog.Warning("the backup is that of a complete training: nothing is left to train",
                    {{"step", run.global_step()}, {"folder", config_.model_dir}});
  }
  if (plan_.validation != nullptr && validation_ == nullptr) {
    ASSIGN_OR_RETURN(const exec::Device device, context_.device());
    ASSIGN_OR_RETURN(validation_, train::Evaluation::Create(config_, run.definition(),
                                                            plan_.validation, device));
  }
  const bool at_step = HasRateSince(run.global_step()), in_epoch = HasRateSince(BeginOfEpoch());
  rate_is_set_ = HasRateSince(plan_.start_step);
  if (!std::exchange(begun_, true)) {
    RETURN_IF_ERROR(BeginTraining());
    RETURN_IF_ERROR(RestoreCallbacks());
  }
  rate_is_set_ = at_step;
  if (ended_ || run.global_step() >= run.total_steps()) return OkStatus();
  return BeginEpoch(in_epoch);
}

tfjob::Status FitRun::BeginEpoch(bool rate_is_set) {
  epoch_begun_ = true;
  totals_ = {};
  bar_.BeginEpoch(epoch_, options_.epochs, steps_, plan_.steps_per_epoch);
  const bool at_step = std::exchange(rate_is_set_, rate_is_set);
  RETURN_IF_ERROR(Each([&](CallbackHooks& hooks) { return hooks.OnEpochBegin(*this, epoch_); }));
  rate_is_set_ = at_step;
  return run_->global_step() < run_->total_steps() ? BeginBatch() : OkStatus();
}

tfjob::Status FitRun::BeginBatch() {
  if (!wants_batches_) return OkStatus();
  RETURN_IF_ERROR(Each([&](CallbackHooks& hooks) {
    return hooks.WantsBatches() ? hooks.OnBatchBegin(*this, steps_) : Status();
  }));
  // If a callback has stopped the training here, no further step will complete the epoch.
  return stopping_ ? EndEpoch() : OkStatus();
}

Metrics FitRun::EpochSoFar() const {
  return Metrics(train::NamedValues(run_->definition(), totals_));
}

int64_t FitRun::StepsInEpoch(int64_t global_step) const {
  const int64_t made = global_step - plan_.start_step;
  return made - (epoch_ - options_.initial_epoch) * plan_.steps_per_epoch;
}

bool FitRun::NeedsTotals(int64_t step) {
  return wants_batches_ || bar_.Due() || StepsInEpoch(step) >= plan_.steps_per_epoch;
}

tfjob::Status FitRun::OnStep(train::Trainer& run, const strategy::MetricTotals& batch,
                             const strategy::StepOutcome& outcome) {
  if (outcome.run_ended) return StoppedByAnother();
  // If the group's members have changed, the batch will be drawn again.
  if (outcome.dropped && batch.examples == 0) return OkStatus();
  taken_ = nullptr;
  // The group has rolled back after the end of training. OnTrainEnd has already been called.
  if (ended_) return OkStatus();
  rate_is_set_ = HasRateSince(run.global_step());
  if (outcome.rolled_back) {
    FindPlace(outcome.global_step);
    record_.Remove(epoch_);
    return BeginEpoch(HasRateSince(BeginOfEpoch()));
  }
  totals_.Add(batch);
  const int64_t batch_number = steps_;
  steps_ = StepsInEpoch(outcome.global_step);
  epochs_begun_ = std::max(epochs_begun_, epoch_ - options_.initial_epoch + 1);
  if (batch.examples > 0 && bar_.Due())
    bar_.Update(std::min(steps_, plan_.steps_per_epoch), EpochSoFar());
  if (wants_batches_) {
    const Metrics metrics = EpochSoFar();
    RETURN_IF_ERROR(Each([&](CallbackHooks& hooks) {
      return hooks.WantsBatches() ? hooks.OnBatchEnd(*this, batch_number, metrics) : Status();
    }));
  }
  const bool last = run.global_step() >= plan_.last_step || stopping_;
  if (steps_ < plan_.steps_per_epoch && !last)
    return run.global_step() < run.total_steps() ? BeginBatch() : OkStatus();
  RETURN_IF_ERROR(EndEpoch());
  // A task that has received its state from another task may have missed epochs.
  FindPlace(run.global_step());
  const bool over = stopping_ || cut_ || run.job_over();
  return run.global_step() < plan_.last_step && !over ? BeginEpoch(rate_is_set_) : OkStatus();
}

tfjob::Status FitRun::StoppedByAnother() {
  taken_ = nullptr;
  if (ended_ || stopping_) return OkStatus();
  stopping_ = true;
  if (run_->global_step() < plan_.last_step) record_.Stop();
  return epoch_begun_ && steps_ > 0 ? EndEpoch() : OkStatus();
}

StatusOr<bool> FitRun::Validate(std::vector<std::pair<std::string, double>>& values) {
  if (servers_ && !is_chief()) return true;
  if (validation_ == nullptr || (epoch_ + 1) % options_.validation_freq != 0) return true;
  // This task has received the state of a later epoch, so the others do not validate now.
  if (!servers_ && steps_ > plan_.steps_per_epoch) return true;
  ASSIGN_OR_RETURN(const auto snapshot, Snapshot());
  const auto totals = run_->Validate(*validation_, *snapshot);
  // A request to stop is not an error here: the run itself stops the task.
  if (absl::IsCancelled(totals.status()) && context_.stop().requested()) return false;
  RETURN_IF_ERROR(totals.status());
  if (!*totals) {
    taken_ = nullptr;  // the values may be those of another step
    return true;
  }
  for (const auto& [name, value] : train::NamedValues(validation_->definition(), **totals))
    values.emplace_back(StrCat("val_", name), value);
  return true;
}

tfjob::Status FitRun::EndEpoch() {
  epoch_begun_ = false;
  if (totals_.examples == 0) return OkStatus();  // other tasks took all steps of this epoch
  std::vector<std::pair<std::string, double>> values = EpochSoFar().values();
  // As in Keras, report the rate only if a callback may change it. The program already knows the
  // rates of a schedule.
  if (sets_rate_) values.emplace_back("learning_rate", learning_rate());
  ASSIGN_OR_RETURN(const bool complete, Validate(values));
  cut_ = !complete;
  if (cut_) return OkStatus();
  // Parameter servers keep the values, so a copy per epoch would waste time.
  if (!servers_) {
    ASSIGN_OR_RETURN(epoch_end_, Snapshot());
  }
  record_.Add(epoch_, values);
  const Metrics metrics(std::move(values));
  bar_.EndEpoch(metrics);
  return Each([&](CallbackHooks& hooks) { return hooks.OnEpochEnd(*this, epoch_, metrics); });
}

// The states are those of the task that has the chief's duties. With all-reduce, the callbacks of
// all tasks see the same metrics.
tfjob::Status FitRun::RestoreCallbacks() {
  const bool continues = run_->global_step() > plan_.start_step;
  if (!continues || config_.model_dir.empty() || (servers_ && !is_chief())) return OkStatus();
  callback_error_ =
      RestoreCallbackStates(config_.model_dir, run_->global_step(), options_.callbacks);
  return callback_error_.ok() ? OkStatus() : Aborted(Message(callback_error_));
}

tfjob::Status FitRun::OnCheckpoint(train::Trainer& run) {
  if (config_.model_dir.empty()) return OkStatus();
  const tfjob::Status written =
      WriteCallbackStates(config_.model_dir, run.global_step(), options_.callbacks);
  if (!written.ok()) {
    kFitLog.Warning("the states of the callbacks are not saved",
                    {{"step", run.global_step()}, {"error", written}});
  }
  return OkStatus();
}

tfjob::Status FitRun::OnEnd(train::Trainer& run) {
  run_ = &run;
  completed_ = CheckCompleted();
  if (!completed_.ok()) return OnStop(run);
  // The last checkpoint is not announced by OnCheckpoint.
  if (is_chief() || run.strategy().Leads()) RETURN_IF_ERROR(OnCheckpoint(run));
  if (servers_) taken_ = nullptr;  // other tasks may have changed the values since the last step
  if (servers_ && !is_chief()) {
    RETURN_IF_ERROR(EndTraining());
    completed_ = JobOver(Cancelled("this task has trained until the last step; the model with the ",
                                   "trained values is the chief's"));
    return OkStatus();
  }
  const auto last = Snapshot();
  RETURN_IF_ERROR(last.status());
  result_ = *last;
  RETURN_IF_ERROR(EndTraining());
  state::Snapshot averaged = end_with_ != nullptr ? *end_with_->snapshot : *result_;
  averaged.learning_rate = result_->learning_rate;
  state::UseAverages(run.state(), averaged);
  result_ = std::make_shared<const state::Snapshot>(std::move(averaged));
  return SaveResult(run);
}

int64_t FitRun::run_end() const {
  const auto end = context_.board().Get().run_end;
  return end ? end->step : 0;
}

tfjob::Status FitRun::SaveResult(const train::Trainer& run) {
  const bool duties = is_chief() || run_->strategy().Leads();
  if (!options_.followed_by_fit || config_.model_dir.empty() || !duties) return OkStatus();
  return Annotate(WriteFitResult({.folder = config_.model_dir,
                                  .job_uid = context_.identity().job_uid,
                                  .run = context_.order().number},
                                 {.history = history(),
                                  .run_end = std::max(run_end(), run.global_step()),
                                  .planned_step = plan_.last_step,
                                  .epochs_begun = epochs_begun_,
                                  .values = result_},
                                 run.state()),
                  "BackupAndRestore");
}

tfjob::Status FitRun::OnStop(train::Trainer& run) {
  run_ = &run;
  if (is_chief() || run.strategy().Leads()) RETURN_IF_ERROR(OnCheckpoint(run));
  Abort();
  if (servers_ && !is_chief()) return OkStatus();
  const auto last = Snapshot();
  if (last.ok()) {
    result_ = *last;
  } else {
    kFitLog.Warning("the model keeps earlier values", {{"because", last.status()}});
    result_ = epoch_end_;
  }
  return OkStatus();
}

void FitRun::OnError(train::Trainer& run, const tfjob::Status& error) {
  if (!begun_) return;
  run_ = &run;
  Abort();
  if (result_ != nullptr) return;
  // A snapshot would wait indefinitely for servers that are lost.
  if (servers_ && callback_error_.ok()) return;
  const auto last = Snapshot();
  const bool damaged = state::IsRunFailure(error) || !last.ok();
  result_ = damaged ? epoch_end_ : *last;
}

tfjob::Status FitRun::CheckCompleted() const {
  if (run_->global_step() < run_->total_steps()) {
    return JobOver(
        Cancelled("the job ended before this task had made its last step: it is at step ",
                  run_->global_step(), " of ", run_->total_steps()));
  }
  if (cut_) return Cancelled("asked to stop at step ", run_->global_step());
  return OkStatus();
}

}  // namespace tfjob::api
