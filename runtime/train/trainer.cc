#include "runtime/train/trainer.h"

#include <algorithm>
#include <utility>

#include "runtime/base/thread_pool.h"
#include "runtime/data/pipeline.h"
#include "runtime/state/run_failure.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/strategy/select.h"
#include "runtime/trace/trace.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/log.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "runtime/train/model_dir/model_directory.h"
#include "runtime/train/model_dir/run_claim.h"

namespace tfjob::train {
namespace {

// The maximum delay before a file that another task has written appears in a shared folder.
constexpr Duration kSharePatience = 20s;
constexpr Duration kShareRetry = 200ms;
constexpr Duration kShowEvery = 250ms;  // the progress

// Returns a valid rank even for a task beyond strategy.max_replicas, which does not train.
int RankOf(const cluster::TfConfig& tf_config, const config::StrategyConfig& config) {
  const int rank = std::max(cluster::TrainingRank(tf_config, tf_config.task), 0);
  const int tasks = strategy::TasksThatTrain(config, tf_config);
  return config.IsElastic() ? std::min(rank, std::max(tasks - 1, 0)) : rank;
}

}  // namespace

Trainer::Trainer(TaskContext& context, collectives::Endpoint* endpoint)
    : context_(context),
      endpoint_(endpoint),
      rank_(RankOf(context.tf_config(), context.config().strategy)),
      tasks_(strategy::TasksThatTrain(context.config().strategy, context.tf_config())),
      run_end_(context, /*folder_every=*/2s),
      skipped_(context.clock(), context.board(), kNotFinite),
      stale_(context.clock(), context.board(), kTooStale),
      log_window_(context.clock()),
      progress_window_(context.clock()),
      profile_(context.profile(), rpc::TaskName(context.identity()), context.files()) {}

Trainer::~Trainer() = default;

const state::TrainingState& Trainer::state() const {
  return definition_->state;
}

Status Trainer::Prepare() {
  const config::TrainingConfig& config = context_.config();
  ASSIGN_OR_RETURN(const config::StrategyKind kind,
                   strategy::Select(config.strategy.kind, context_.tf_config()));
  RETURN_IF_ERROR(CheckHasModelDir());
  const bool together = strategy::MakesGlobalBatches(kind);
  ASSIGN_OR_RETURN(model::Model model, ModelOf(context_.inputs(), config));
  ASSIGN_OR_RETURN(source_, DataOf(context_.inputs(), config, Split::kTrain, model));
  ASSIGN_OR_RETURN(strategy::ModelDefinition definition,
                   DefineModel(config, Split::kTrain, *source_, tasks_, std::move(model)));
  definition_ = std::make_unique<strategy::ModelDefinition>(std::move(definition));
  total_steps_ = TotalSteps(config, *source_, tasks_, together);
  steps_per_epoch_ = StepsPerEpoch(config, *source_, tasks_, together);
  const int sharing = context_.inputs().own_examples ? 0 : tasks_;
  ASSIGN_OR_RETURN(const data::PipelineOptions options,
                   TrainingPipeline(config, *definition_, *source_, rank_, sharing, together));
  if (tasks_ == 0 && config.data.shard == config::ShardPolicy::kAuto) {
    kTrainLog.Warning(
        "an example may be used by several tasks in an epoch, or by none: with "
        "enableDynamicWorker and parameter servers, the number of training tasks is unknown, so "
        "each task uses all examples, in an order of its own",
        {{"data.shard", "off"}});
  }
  ASSIGN_OR_RETURN(pipeline_, data::Pipeline::Create(source_, options));
  if (const std::string left_out = source_->LeftOut(); !left_out.empty()) {
    kTrainLog.Warning(left_out, {{"key", KeyOf(Split::kTrain)}});
    context_.board().ShowProblem("data", left_out);
  }
  ASSIGN_OR_RETURN(strategy_, MakeStrategy());
  RETURN_IF_ERROR(LoadWeights());
  context_.board().Update([&](progress::Progress& p) { p.max_steps = total_steps_; });
  return OkStatus();
}

Status Trainer::LoadWeights() {
  const config::TrainingConfig& config = context_.config();
  const bool chief = cluster::RoleOf(context_.tf_config()) == cluster::Role::kChief;
  if (config.model.weights.empty() || !chief) return OkStatus();
  if (!config.model_dir.empty()) {
    ASSIGN_OR_RETURN(const auto latest, io::LatestCheckpoint(config.model_dir));
    if (latest) return OkStatus();
  }
  ASSIGN_OR_RETURN(start_, StartState(config, *definition_, strategy_->tables()));
  return OkStatus();
}

StatusOr<std::unique_ptr<strategy::Strategy>> Trainer::MakeStrategy() {
  const bool chief = cluster::RoleOf(context_.tf_config()) == cluster::Role::kChief;
  // Without the job's UID, the marker of an earlier run might be mistaken for this run's.
  const bool others_end = context_.config().strategy.on_failure == config::OnFailure::kShrink &&
                          !context_.identity().job_uid.empty();
  strategy::TrainingTask task{
      .config = context_.config().strategy,
      .tf_config = context_.tf_config(),
      .identity = context_.identity(),
      .credentials = context_.credentials(),
      .on_event = [this](const state::PeerEvent& event) { OnPeerEvent(event); },
      // Only workers stop when the run is over. The chief itself decides when the run is over, and
      // must still stop the servers afterwards, unless another task has taken its place.
      .stop_requested =
          [this, chief = chief && !others_end] {
            return chief ? context_.stop().requested() : ShouldNotWait();
          },
      .asked_to_end = [this] { return context_.stop().requested(); },
      .stop_patience = context_.stop_budget().answer,
      .on_late_step = [this] { OnLateStep(); },
      .endpoint = endpoint_,
      .claim_run = [this] { return ClaimRun(); },
      .find_claim = [this](int64_t first_term) { return AwaitClaim(first_term); },
      // The others must not look for the claim before it exists: NFS may remember that it did not.
      .begins_again = chief && context_.config().strategy.IsElastic() && BeginsAgain(),
      .global_batch = UsualGlobalBatch(context_.config(), *source_, tasks_),
      .last_step = total_steps_,
      .agreement = TrainingAgreement(context_.config(), *source_)};
  ASSIGN_OR_RETURN(exec::Device device, context_.device());
  if (device.for_tests) {
    kTrainLog.Warning("computes on a device for tests: much slower than the CPU",
                      {{"device", device.name}});
  }
  return strategy::MakeStrategy(
      std::move(task),
      {.definition = *definition_,
       .device = std::move(device),
       .on_non_finite = context_.config().on_non_finite,
       .replica = rank_,
       .provide_state = [this](const state::Snapshot* into) { return ProvideState(into); }});
}

StatusOr<std::optional<state::Snapshot>> Trainer::SavedState(const state::Snapshot* into) {
  if (observer_ != nullptr) {
    if (std::optional<state::Snapshot> newer = observer_->OnRestore()) {
      kTrainLog.Info("restored the state that is being saved", {{"step", newer->global_step}});
      return newer;
    }
  }
  const std::string& folder = context_.config().model_dir;
  if (folder.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(std::optional<state::Snapshot> saved,
                   LoadLatestCheckpoint(
                       folder, definition_->state,
                       {.into = into, .pool = context_.pool(), .streamed = strategy_->tables()}));
  if (saved) {
    kTrainLog.Info("restored a checkpoint", {{"model_dir", folder}, {"step", saved->global_step}});
  }
  return saved;
}

StatusOr<state::Snapshot> Trainer::ProvideState(const state::Snapshot* into) {
  const std::string& folder = context_.config().model_dir;
  const bool again = std::exchange(filled_, true) || joined_;
  ASSIGN_OR_RETURN(std::optional<state::Snapshot> saved, SavedState(into));
  if (saved) {
    if (joined_) {
      const bool servers = context_.tf_config().cluster.size("ps") > 0;
      kTrainLog.Warning(
          servers ? "variables that a parameter server has lost go back to a saved state"
                  : "the group goes back to a saved state",
          {{"step", saved->global_step}, {"steps_lost", global_step_ - saved->global_step}});
    }
    return *std::move(saved);
  }
  if (again)
    kTrainLog.Warning("lost variables are reinitialised: no checkpoint", {{"model_dir", folder}});
  const std::string& weights = context_.config().model.weights;
  StatusOr<state::Snapshot> start =
      start_ ? StatusOr<state::Snapshot>(*std::move(start_))
             : StartOf(context_.inputs(), context_.config(), *definition_, strategy_->tables(),
                       context_.tf_config().task);
  start_.reset();
  RETURN_IF_ERROR(start.status());
  if (!weights.empty()) kTrainLog.Info("loaded weights", {{"file", weights}});
  kTrainLog.Info("initialised the variables",
                 {{"count", definition_->variables.size()}, {"seed", definition_->seed}});
  return start;
}

// Uses the current time as first_term, unless the folder records a later term. The time
// distinguishes this run from an earlier run whose last terms were not recorded.
StatusOr<strategy::RunClaim> Trainer::ClaimRun() {
  const int64_t now = context_.clock().Now().time_since_epoch().count();
  const std::string& folder = context_.config().model_dir;
  if (folder.empty()) return strategy::RunClaim{.first_term = now};  // a task that trains alone
  ASSIGN_OR_RETURN(const int64_t recorded, io::RecordedTerm(folder));
  strategy::RunClaim claim{.first_term = std::max(now, recorded)};
  const rpc::Identity& self = context_.identity();
  const Status written =
      WriteClaim(folder, {claim.first_term, self.job_uid, self.attempt}, context_.files());
  claim.written = written.ok();
  if (!written.ok()) {
    if (!MayPass(written)) return Annotate(written, "model_dir");
    kTrainLog.Warning("cannot check whether all tasks share model_dir", {{"error", written}});
  }
  return claim;
}

bool Trainer::BeginsAgain() const {
  const std::string& folder = context_.config().model_dir;
  if (folder.empty()) return false;
  const StatusOr<Claim> claim = ReadClaim(folder);
  if (absl::IsNotFound(claim.status())) {
    const StatusOr<std::optional<io::Checkpoint>> latest = io::LatestCheckpoint(folder);
    return !latest.ok() || latest->has_value();
  }
  if (!claim.ok()) return true;
  const rpc::Identity& self = context_.identity();
  return claim->job_uid == self.job_uid && claim->attempt == self.attempt;
}

Status Trainer::CheckHasModelDir() const {
  const config::TrainingConfig& config = context_.config();
  const bool shrinks = config.strategy.on_failure == config::OnFailure::kShrink;
  const bool alone = tasks_ == 1 && !config.strategy.IsElastic();
  if (!shrinks || alone || !config.model_dir.empty()) return OkStatus();
  return InvalidArgument("strategy.on_failure: shrink needs a folder that all tasks share, in ",
                         "which a task that returns late finds out that the run has ended: set ",
                         "model_dir (in C++, pass BackupAndRestore), or use on_failure: wait");
}

// If the folder cannot be read, only logs a warning: the folder may be damaged or temporarily out
// of reach, which does not prove that the tasks do not share it.
Status Trainer::AwaitClaim(int64_t first_term) {
  const std::string& folder = context_.config().model_dir;
  const Duration deadline = context_.clock().Monotonic() + kSharePatience;
  for (bool first = true;; first = false) {
    const StatusOr<Claim> seen = ReadClaim(folder);
    if (seen.ok() && seen->first_term >= first_term) return OkStatus();
    if (!seen.ok() && !absl::IsNotFound(seen.status())) {
      kTrainLog.Warning("cannot check whether all tasks share model_dir",
                        {{"error", seen.status()}});
      return OkStatus();
    }
    if (first) {
      kTrainLog.Info("waits until it sees what another task has written to group.json in model_dir",
                     {{"model_dir", folder}});
    }
    if (context_.stop().WaitFor(kShareRetry) || ShouldNotWait()) return OkStatus();
    if (context_.clock().Monotonic() >= deadline) break;
  }
  return Unavailable(
      "model_dir: strategy.on_failure: shrink needs a folder that all tasks share, but ",
      cluster::ToString(context_.tf_config().task), " does not see in ", folder,
      " what another task has written to group.json there at least ",
      FormatDuration(kSharePatience),
      " ago: mount the same volume in all tasks (ReadWriteMany), or use on_failure: wait");
}

Status Trainer::CheckSharesModelDir() {
  const strategy::RunClaim claim = strategy_->Claim();
  const Status shares = claim.written ? AwaitClaim(claim.first_term) : OkStatus();
  return shares.ok() ? shares : state::RunFailure(std::string(Message(shares)));
}

StatusOr<std::optional<strategy::MetricTotals>> Trainer::Validate(Evaluation& evaluation,
                                                                  const state::Snapshot& snapshot) {
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kEvaluating; });
  StatusOr<strategy::ValidationOutcome> validated = strategy_->Validate(
      {.evaluate =
           [&](const strategy::ValidationPart& part, strategy::MetricTotals& totals) {
             return evaluation.RunPart(part, snapshot, context_.stop(), totals);
           },
       .agreement = evaluation.agreement()});
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kTraining; });
  if (absl::IsCancelled(validated.status()) && !context_.stop().requested()) {
    RETURN_IF_ERROR(run_end_.Failure());
    kTrainLog.Info("no further step", {{"because", Message(validated.status())}});
    job_over_ = true;
    return std::nullopt;
  }
  RETURN_IF_ERROR(validated.status());
  if (validated->next) MoveTo(*validated->next);
  return std::move(validated->totals);
}

void Trainer::MoveTo(strategy::StepOutcome outcome) {
  outcome.rolled_back = outcome.global_step < global_step_;
  global_step_ = outcome.global_step;
  if (outcome.rolled_back) {
    rolled_back_ = outcome;
  } else {
    Reposition(outcome);
  }
}

Status Trainer::EndHere() {
  if (global_step_ >= total_steps_) return OkStatus();
  if (tasks_ != 1 || context_.config().strategy.IsElastic()) {
    const StatusOr<strategy::StepOutcome> ended = strategy_->EndRun();
    // If this task was asked to stop, the loop handles the request.
    if (!ended.ok() && context_.stop().requested()) return OkStatus();
    if (!ended.ok()) end_error_ = run_end_.Failure();
    if (absl::IsCancelled(ended.status()) && end_error_.ok()) {
      job_over_ = true;  // another task has ended the job
      return OkStatus();
    }
    if (end_error_.ok()) end_error_ = ended.status();
    RETURN_IF_ERROR(end_error_);
    global_step_ = ended->global_step;
    if (ended->rolled_back) rolled_back_ = *ended;
    if (!ended->run_ended) return OkStatus();
  }
  total_steps_ = std::min(total_steps_, global_step_);
  return OkStatus();
}

bool Trainer::ShouldNotWait() {
  // Check for the end of the run, because a worker that is restarted after the end finds no
  // servers.
  return context_.stop().requested() || run_end_.Ended().has_value();
}

Status Trainer::Stopped() {
  return Cancelled("asked to stop at step ", global_step_);
}

Status Trainer::Train(StepObserver* observer) {
  observer_ = observer;
  const bool again = joined_;
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kWaiting; });
  const StatusOr<strategy::StepOutcome> start = strategy_->Start();
  joined_ = start.ok();
  if (state::IsRunFailure(start.status())) return start.status();
  RETURN_IF_ERROR(run_end_.Failure());
  // A task that has trained before may still save its state.
  if (!start.ok() && context_.stop().requested()) return again ? Stop() : Stopped();
  if (absl::IsCancelled(start.status()) && !context_.stop().requested()) {
    kTrainLog.Info("nothing to do", {{"because", Message(start.status())}});
    job_over_ = true;
    return OkStatus();
  }
  RETURN_IF_ERROR(start.status());
  if (!again) RETURN_IF_ERROR(CheckSharesModelDir());
  global_step_ = start->global_step;
  Reposition(*start);
  const int tasks = start->ranks > 0 ? start->ranks : tasks_;  // a group's number may change
  kTrainLog.Info("training", {{"from_step", global_step_},
                              {"to_step", total_steps_},
                              {"from_batch", start->drawn},
                              {"rank", rank_},
                              {"tasks", tasks > 0 ? StrCat(tasks) : std::string("unknown")}});
  if (observer_ != nullptr) RETURN_IF_ERROR(OrEndError(observer_->OnStart(global_step_)));
  context_.board().Update([&](progress::Progress& p) {
    p.state = progress::State::kTraining;
    p.waiting_for.clear();
    p.step = global_step_;
  });
  log_window_.Reset(global_step_);
  progress_window_.Reset(global_step_);
  return Loop();
}

Status Trainer::Stop() {
  if (observer_ != nullptr) RETURN_IF_ERROR(observer_->OnStop());
  const Status left = strategy_->Withdraw();
  if (!left.ok()) kTrainLog.Info("left without notifying all servers", {{"because", left}});
  return Stopped();
}

Status Trainer::Loop() {
  strategy::MetricTotals batch_totals;
  while (global_step_ < total_steps_ && !job_over_) {
    if (context_.stop().requested()) return Stop();
    if (rolled_back_) {
      RETURN_IF_ERROR(RollBack());
      continue;
    }
    RETURN_IF_ERROR(TellOfEndings());
    profile_.BeforeStep(global_step_);
    RETURN_IF_ERROR(StepOnce(batch_totals));
    if (!job_over_) profile_.AfterStep(global_step_);
  }
  ShowProgress();
  return OkStatus();
}

Status Trainer::StepOnce(strategy::MetricTotals& totals) {
  const trace::Span span(trace::Category::kStep,
                         trace::Recording() ? StrCat("step ", global_step_ + 1) : "");
  totals.loss_sum = 0;
  totals.examples = 0;
  std::fill(totals.metric_sums.begin(), totals.metric_sums.end(), 0.0);
  const StatusOr<strategy::StepOutcome> outcome = Step(totals);
  // Save nothing, even if the task was asked to stop, because the variables may be damaged.
  if (state::IsRunFailure(outcome.status())) return outcome.status();
  // If the step failed because the task was asked to stop, still save the last completed step.
  if (!outcome.ok() && context_.stop().requested()) return Stop();
  RETURN_IF_ERROR(outcome.status());
  if (job_over_) return OkStatus();
  global_step_ = outcome->global_step;
  if (outcome->run_ended) {
    kTrainLog.Info("another task has ended the run", {{"step", global_step_}});
    total_steps_ = global_step_;
    return Observe(totals, *outcome);
  }
  if (outcome->skipped) {
    skipped_.Add(global_step_ + 1);
    return OkStatus();
  }
  if (outcome->dropped && context_.config().strategy.max_staleness) stale_.Add(global_step_);
  Report(totals, *outcome);
  return Observe(totals, *outcome);
}

Status Trainer::Observe(const strategy::MetricTotals& totals,
                        const strategy::StepOutcome& outcome) {
  if (observer_ == nullptr) return OkStatus();
  RETURN_IF_ERROR(OrEndError(observer_->OnStep(totals, outcome)));
  // The observer may have moved to another step, or found that the run has ended (Validate).
  if (outcome.rolled_back || rolled_back_ || job_over_) return OkStatus();
  return OrEndError(observer_->OnStepEnd(global_step_));
}

Status Trainer::RollBack() {
  const strategy::StepOutcome outcome = *std::exchange(rolled_back_, std::nullopt);
  Reposition(outcome);
  const strategy::MetricTotals none;
  Report(none, outcome);
  return observer_ == nullptr ? OkStatus() : OrEndError(observer_->OnStep(none, outcome));
}

Status Trainer::OrEndError(const Status& observed) const {
  return end_error_.ok() ? observed : end_error_;
}

Status Trainer::TellOfEndings() {
  if (!trainers_end_ && !servers_end_) return OkStatus();
  trainers_end_ = false;
  const bool servers = servers_end_.exchange(false);
  const Status told = observer_ == nullptr ? OkStatus() : observer_->OnOthersEnding(servers);
  // If the task was asked to stop, the loop handles the request.
  return context_.stop().requested() ? OkStatus() : told;
}

// Notifies the observer during the step that servers were asked to stop, because the step may take
// longer than these servers can wait.
void Trainer::OnLateStep() {
  if (TellOfEndings().ok()) return;
  servers_end_ = true;  // notify the observer again after the step; that call returns the error
}

const data::Batch* Trainer::NextBatch() {
  const trace::Span span(trace::Category::kData, "wait for a batch");
  const strategy::AnnouncedPhase phase(*strategy_, state::WorkPhase::kReadingData);
  return pipeline_->Next();
}

StatusOr<strategy::StepOutcome> Trainer::Step(strategy::MetricTotals& totals) {
  const data::Batch* batch = NextBatch();
  if (batch == nullptr) return pipeline_->status();  // the pipeline never ends without an error
  StatusOr<strategy::StepOutcome> outcome = strategy_->Step(*batch, totals);
  if (absl::IsCancelled(outcome.status()) && !context_.stop().requested()) {
    RETURN_IF_ERROR(run_end_.Failure());
    kTrainLog.Info("no further step", {{"because", Message(outcome.status())}});
    job_over_ = true;
    return strategy::StepOutcome{.global_step = global_step_};
  }
  RETURN_IF_ERROR(outcome.status());
  if (NeedsTotals(outcome->global_step)) RETURN_IF_ERROR(strategy_->TakeTotals(totals));
  if (outcome->global_step < global_step_) outcome->rolled_back = true;
  Reposition(*outcome);
  return outcome;
}

bool Trainer::NeedsTotals(int64_t step) {
  show_progress_ = progress_window_.age() >= kShowEvery;
  return show_progress_ || LogsAt(step) || step >= total_steps_ ||
         (observer_ != nullptr && observer_->NeedsTotals(step));
}

void Trainer::Reposition(const strategy::StepOutcome& outcome) {
  if (outcome.ranks > 0) pipeline_->TakePart(outcome.rank, outcome.ranks);
  pipeline_->Seek(outcome.drawn);
}

bool Trainer::Leave() {
  if (!joined_ || job_over_) return true;
  const Status left = strategy_->Leave();
  if (absl::IsAborted(left)) {
    kTrainLog.Warning("trains on after the last step", {{"because", left}});
    return false;
  }
  if (!left.ok()) kTrainLog.Info("left without notifying all servers", {{"because", left}});
  return true;
}

}  // namespace tfjob::train
