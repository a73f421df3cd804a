#include "runtime/train/chief.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "runtime/base/thread_pool.h"
#include "runtime/exec/device.h"
#include "runtime/graph/graph_def/graph_def.h"
#include "runtime/progress/client.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/log.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "runtime/train/model_dir/summary_writer.h"

namespace tfjob::train {
namespace {

// How long the chief waits at the end of the job: for the workers to leave, for an evaluator that
// does not respond, and for an evaluator that does.
constexpr Duration kWorkersDeadline = 10s;
constexpr Duration kSilentEvaluatorDeadline = 30s;
constexpr Duration kEvaluatorDeadline = 600s;

// How long to delay the save that becomes due when workers are asked to stop. If the whole job is
// stopping, the chief itself is asked to stop within this time. It then saves only once, and need
// not wait first for the write of an earlier step. The delay is safe, because the servers keep
// running.
constexpr Duration kAfterWorkersEnd = 1s;

// How long a restore waits for the checkpoint that is being written.
constexpr Duration kWritePatience = 300s;

// The interval at which the chief checks whether the evaluator is done.
constexpr Duration kEvaluatorPoll = 500ms;

Duration Seconds(double seconds) {
  return Duration(static_cast<int64_t>(std::min(seconds, 1e9) * 1e6));
}

SavePolicy PolicyOf(const config::TrainingConfig& config) {
  const config::CheckpointTriggers triggers = config::CheckpointEvery(config);
  return {.every = Seconds(triggers.secs),
          .every_steps = triggers.steps,
          .final_patience = Seconds(config.final_save_secs)};
}

std::function<Status()> RightToWrite(const config::TrainingConfig& config, Trainer& trainer) {
  if (config.strategy.on_failure != config::OnFailure::kShrink) return nullptr;
  return [guard = trainer.strategy().WriteGuard()] {
    if (guard()) return OkStatus();
    return Unavailable(
        "this task may not write to model_dir now: it is cut off from most tasks of its group, "
        "which may continue without it");
  };
}

}  // namespace

Chief::Chief(TaskContext& context, Trainer& trainer)
    : context_(context),
      trainer_(trainer),
      may_write_(RightToWrite(context.config(), trainer)),
      directory_(MakeDirectory()),
      saver_(SaverOptionsOf(), context.clock()),
      window_(context.clock()) {}

Chief::~Chief() = default;

bool Chief::Evaluates() const {
  return context_.tf_config().cluster.size("evaluator") == 0 &&
         (context_.inputs().eval != nullptr || context_.config().data.eval.present());
}

std::shared_ptr<ModelDirectory> Chief::MakeDirectory() const {
  const config::TrainingConfig& config = context_.config();
  if (config.model_dir.empty()) return nullptr;
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return std::make_shared<ModelDirectory>(
      ModelDirectoryOptions{.folder = config.model_dir,
                            .training = trainer_.state(),
                            .keep = static_cast<int>(std::min(config.keep_checkpoint_max, kMost)),
                            .run = context_.run(),
                            .files = &context_.files(),
                            .may_write = may_write_,
                            .late_claim = late_claim_});
}

SaverOptions Chief::SaverOptionsOf() const {
  SaverOptions options{.may_write = may_write_, .policy = PolicyOf(context_.config())};
  if (directory_ == nullptr) return options;
  options.write = [directory = directory_](const state::Snapshot& snapshot, Time now,
                                           int64_t term) {
    return directory->Save(snapshot, now, term);
  };
  options.mark = [directory = directory_](int64_t step, Time now) {
    return directory->Mark(step, now);
  };
  options.show = [board = &context_.board()](const std::string& problem) {
    board->ShowProblem("checkpoints", problem);
  };
  return options;
}

std::unique_ptr<SummaryWriter> Chief::WriteSummariesTo(const std::string& folder) {
  SummaryOptions options{
      .folder = folder,
      .show = [board = &context_.board()](
                  const std::string& problem) { board->ShowProblem("summaries", problem); },
      .files = &context_.files()};
  return std::make_unique<SummaryWriter>(std::move(options), context_.clock());
}

Status Chief::Prepare() {
  const config::TrainingConfig& config = context_.config();
  if (!config.model_dir.empty()) {
    RETURN_IF_ERROR(
        CheckLatestCheckpoint(config.model_dir, trainer_.state(), trainer_.strategy().tables()));
  }
  if (Evaluates()) RETURN_IF_ERROR(PrepareEvaluation());
  return may_write_ || directory_ == nullptr ? OkStatus() : directory_->Prepare();
}

Status Chief::PrepareEvaluation() {
  const config::TrainingConfig& config = context_.config();
  ASSIGN_OR_RETURN(auto dataset,
                   DataOf(context_.inputs(), config, Split::kEval, trainer_.definition().model));
  ASSIGN_OR_RETURN(const exec::Device device, context_.device());
  ASSIGN_OR_RETURN(evaluation_, Evaluation::Create(config, trainer_.definition(), dataset, device));
  return OkStatus();
}

void Chief::GiveUp() {
  saver_.Abandon();
  context_.board().ShowProblem("checkpoints", "");
  if (summaries_ == nullptr) return;
  summaries_->Abandon();
  context_.board().ShowProblem("summaries", "");
}

void Chief::SummariseGraph() {
  const strategy::ModelDefinition& definition = trainer_.definition();
  // If the graph receives only rows of tables, it cannot contain the updates.
  const bool with_updates = definition.tables.empty();
  const auto built = strategy::BuildGraph(definition, model::Mode::kTrain,
                                          definition.build.batch_size, with_updates);
  StatusOr<std::string> bytes =
      built.ok() ? graph::WriteGraphDef(built->graph, graph::Constants::kSmall) : built.status();
  if (bytes.ok()) {
    summaries_->AddGraph(*std::move(bytes));
  } else {
    kChiefLog.Warning("the summaries lack the graph", {{"error", bytes.status()}});
  }
}

void Chief::ExpectClaim() {
  const strategy::RunClaim claim = trainer_.strategy().Claim();
  if (!may_write_ || claim.written) return;
  const rpc::Identity& self = context_.identity();
  late_claim_->Expect(
      {.first_term = claim.first_term, .job_uid = self.job_uid, .attempt = self.attempt});
}

Status Chief::OnStepEnd(int64_t step) {
  if (late_claim_->TakeWritten()) {
    kChiefLog.Info("wrote group.json, which could not be written when the run began",
                   {{"model_dir", context_.config().model_dir}});
    trainer_.strategy().NoteClaimWritten();
  }
  return SaveIfDue(step);
}

Status Chief::OnStart(int64_t step) {
  window_.Reset(step);
  const config::TrainingConfig& config = context_.config();
  if (config.model_dir.empty()) return OkStatus();
  ExpectClaim();
  if (config.save_summary_steps > 0) {
    if (summaries_ == nullptr) {
      summaries_ = WriteSummariesTo(config.model_dir);
      SummariseGraph();
    }
    if (step > 0) summaries_->AddStart(step);
  }
  if (!may_write_) {
    const StatusOr<std::optional<io::Checkpoint>> latest = io::LatestCheckpoint(config.model_dir);
    if (latest.ok() && *latest && (*latest)->step == step) {
      saver_.Restored(step);
      return OkStatus();
    }
  }
  saver_.Require();  // a lost state can then always be restored
  return SaveIfDue(step);
}

Status Chief::OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) {
  if (outcome.rolled_back) {
    window_.Reset(outcome.global_step);
    if (saver_.enabled()) saver_.Restored(outcome.global_step);
    if (summaries_ != nullptr) summaries_->AddStart(outcome.global_step);
    return OkStatus();
  }
  window_.Add(batch, outcome);
  RequirePutOffSave();
  if (SummarisesAt(outcome.global_step)) Summarise(outcome.global_step);
  return OkStatus();
}

bool Chief::SummarisesAt(int64_t step) const {
  const int64_t every = context_.config().save_summary_steps;
  return summaries_ != nullptr && step / every > window_.start_step() / every;
}

void Chief::Summarise(int64_t step) {
  auto values = NamedValues(trainer_.definition(), window_.totals());
  values.emplace_back("global_step/sec", window_.StepsPerSecond(step));
  values.emplace_back("staleness", window_.mean_staleness());
  window_.Reset(step);
  summaries_->AddScalars(step, std::move(values));
}

Status Chief::SaveIfDue(int64_t step) {
  if (!saver_.Due(step)) return OkStatus();
  const strategy::AnnouncedPhase phase(trainer_.strategy(), state::WorkPhase::kSaving);
  if (step >= trainer_.total_steps()) {
    ASSIGN_OR_RETURN(state::Snapshot last, trainer_.strategy().TakeSnapshot());
    state::UseAverages(trainer_.state(), last);
    saver_.Save(std::move(last), trainer_.strategy().WriteTerm());
    begun_save_ = step;
    return OkStatus();
  }
  ASSIGN_OR_RETURN(state::SnapshotCopy snapshot, trainer_.strategy().BeginSnapshot());
  saver_.Save(std::move(snapshot), trainer_.strategy().WriteTerm());
  begun_save_ = step;
  return OkStatus();
}

std::optional<state::Snapshot> Chief::OnRestore() {
  std::optional<state::Snapshot> written = saver_.InFlight();
  if (!written || !state::HasStreamedValues(*written)) return written;
  // The tables of this state are on the servers, and at least one server is lost. The write in
  // progress succeeds only if it has already read the tables; its checkpoint is then the newest
  // state.
  written.reset();
  if (!saver_.AwaitWrites(kWritePatience, context_.stop()))
    kChiefLog.Warning("restores a checkpoint older than the one that is being written");
  return std::nullopt;
}

StatusOr<state::Snapshot> Chief::StateOf(int64_t step) {
  std::optional<state::Snapshot> written = saver_.InFlight();
  if (written && written->global_step == step && !state::IsLost(*written))
    return *std::move(written);
  return trainer_.strategy().TakeSnapshot();
}

Status Chief::OnStop() {
  const int64_t step = trainer_.global_step();
  if (!saver_.enabled() || saver_.saved_step() == step) return OkStatus();
  const strategy::AnnouncedPhase phase(trainer_.strategy(), state::WorkPhase::kSaving);
  StatusOr<state::Snapshot> last = StateOf(step);
  // Servers that were asked to stop may be gone. In that case, OnOthersEnding has copied their
  // state, and no step has followed that copy.
  if (!last.ok() && saver_.saved_step().value_or(-1) >= step) return OkStatus();
  if (!last.ok()) {
    std::optional<state::Snapshot> copied = saver_.InFlight();
    if (copied && copied->global_step >= step) last = *std::move(copied);
  }
  const Status saved =
      last.ok() ? saver_.SaveBeforeExit(*std::move(last), trainer_.strategy().WriteTerm())
                : last.status();
  if (!saved.ok()) {
    kChiefLog.Error("ends without a checkpoint of its last step",
                    {{"step", step}, {"error", saved}});
  }
  return OkStatus();
}

Status Chief::OnOthersEnding(bool servers) {
  if (!saver_.enabled()) return OkStatus();
  if (!servers) {
    if (!save_at_) save_at_ = context_.clock().Monotonic() + kAfterWorkersEnd;
    return OkStatus();
  }
  save_at_.reset();
  const strategy::AnnouncedPhase phase(trainer_.strategy(), state::WorkPhase::kSaving);
  ASSIGN_OR_RETURN(state::Snapshot snapshot, trainer_.strategy().TakeSnapshot());
  saver_.SaveNext(std::move(snapshot), trainer_.strategy().WriteTerm());
  return OkStatus();
}

void Chief::RequirePutOffSave() {
  if (!save_at_ || context_.clock().Monotonic() < *save_at_) return;
  save_at_.reset();
  if (saver_.enabled()) saver_.Require();
}

StatusOr<bool> Chief::SaveLast() {
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kSaving; });
  if (saver_.enabled() && saver_.saved_step() != trainer_.global_step()) {
    saver_.Require();
    RETURN_IF_ERROR(SaveIfDue(trainer_.global_step()));
  }
  AwaitWorkers();
  ASSIGN_OR_RETURN(last_, trainer_.strategy().TakeSnapshot());
  if (last_.global_step < trainer_.total_steps()) {
    kChiefLog.Warning("the variables were rolled back at the end", {{"step", last_.global_step}});
    last_ = {};  // lets the servers release its tables
    return false;
  }
  state::UseAverages(trainer_.state(), last_);
  const strategy::AnnouncedPhase phase(
      trainer_.strategy(), state::WorkPhase::kSaving,
      std::max(state::kUsualPhaseLimit, Seconds(context_.config().final_save_secs)));
  const Status saved = saver_.SaveLast(last_, context_.stop(), trainer_.strategy().WriteTerm());
  if (absl::IsAborted(saved)) {
    kChiefLog.Warning("joins the group again before the last state is saved", {{"because", saved}});
    last_ = {};
    return false;
  }
  if (!saved.ok() && state::IsLost(last_) && !context_.stop().requested()) {
    kChiefLog.Warning("takes the last state again", {{"because", saved}});
    last_ = {};
    return false;
  }
  RETURN_IF_ERROR(saved);
  context_.board().Update([this](progress::Progress& p) {
    p.run_end = progress::RunEnd{last_.global_step, RunFingerprint(context_.run())};
  });
  return true;
}

Status Chief::EndJob() {
  if (context_.tf_config().cluster.size("evaluator") > 0) AwaitEvaluator();
  const Status evaluated = Evaluates() ? EvaluateHere() : OkStatus();
  if (absl::IsCancelled(evaluated)) return evaluated;
  summaries_.reset();  // writes the remaining summaries
  trainer_.Leave();
  const Status finished = trainer_.strategy().Finish();
  if (!finished.ok())
    kChiefLog.Warning("could not tell every server that the job is over", {{"error", finished}});
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kFinished; });
  kChiefLog.Info("the job is over",
                 {{"step", last_.global_step}, {"model_dir", context_.config().model_dir}});
  return evaluated;
}

void Chief::AwaitWorkers() {
  if (!trainer_.strategy().OthersContinue()) return;
  const Duration start = context_.clock().Monotonic();
  std::vector<std::string> others;
  while (context_.clock().Monotonic() - start < kWorkersDeadline) {
    others.clear();
    for (const state::PeerState& peer : trainer_.strategy().Peers()) {
      const bool other_trains =
          peer.role == state::PeerRole::kTrains && peer.task != context_.board().Get().task;
      if (other_trains && peer.health != state::PeerHealth::kLost) others.push_back(peer.task);
    }
    if (others.empty() || context_.stop().WaitFor(20ms)) return;
  }
  kChiefLog.Warning("no longer waiting for tasks that have not left",
                    {{"tasks", absl::StrJoin(others, ", ")}});
}

// Evaluates the last state. If there is a checkpoint of the last step, reads the rows of tables
// from the checkpoint, because it takes longer to request each row from the servers.
StatusOr<strategy::MetricTotals> Chief::EvaluateLast() {
  const std::string& folder = context_.config().model_dir;
  if (folder.empty() || !state::HasStreamedValues(last_))
    return evaluation_->Run(last_, context_.stop());
  LoadOptions::Stored stored{.variables = evaluation_->tables(), .values = {}};
  ASSIGN_OR_RETURN(const state::Snapshot saved,
                   LoadCheckpoint(io::CheckpointPrefix(folder, last_.global_step), trainer_.state(),
                                  {.into = nullptr, .pool = context_.pool(), .stored = &stored}));
  return evaluation_->Run(saved, context_.stop(), stored.values);
}

Status Chief::EvaluateHere() {
  const std::string& folder = context_.config().model_dir;
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kEvaluating; });
  RETURN_IF_ERROR(context_.BeforeEvaluation());
  if (evaluation_ == nullptr) RETURN_IF_ERROR(PrepareEvaluation());
  ASSIGN_OR_RETURN(const strategy::MetricTotals totals, EvaluateLast());
  std::unique_ptr<SummaryWriter> summaries;
  if (!folder.empty()) summaries = WriteSummariesTo(folder + "/eval");
  PublishEvaluation(trainer_.definition(), last_.global_step, totals, context_.board(),
                    summaries.get());
  context_.OnEvaluation(last_.global_step, NamedValues(trainer_.definition(), totals));
  return OkStatus();
}

// Returns whether the evaluator has reported that it is done: on its port, or with a marker in its
// folder. Either report is enough, because the evaluator's disk may be full, or the evaluator may
// already have exited.
bool Chief::EvaluatorIsDone(progress::ProgressClient& evaluator, Duration now, Duration& heard) {
  const StatusOr<std::optional<int64_t>> marked =
      FinishedStep(context_.config().model_dir + "/eval", context_.run());
  if (marked.ok() && *marked) return true;
  const StatusOr<progress::Progress> progress = evaluator.Fetch(2s);
  if (!progress.ok()) return false;
  heard = now;
  return progress->run_end && progress->run_end->run == RunFingerprint(context_.run()) &&
         progress->run_end->step >= last_.global_step;
}

void Chief::AwaitEvaluator() {
  const std::string& address = context_.tf_config().cluster.address({"evaluator", 0});
  context_.board().Update([&](progress::Progress& p) {
    p.state = progress::State::kWaiting;
    p.waiting_for = StrCat("the evaluator at ", address, " to evaluate the last checkpoint");
  });
  kChiefLog.Info("waiting for the evaluator", {{"address", address}});
  progress::ProgressClient evaluator(address, context_.credentials().key);
  const Duration start = context_.clock().Monotonic();
  Duration heard = start, reported = start;
  while (context_.clock().Monotonic() - start < kEvaluatorDeadline) {
    const Duration now = context_.clock().Monotonic();
    if (EvaluatorIsDone(evaluator, now, heard)) return;
    if (now - heard > kSilentEvaluatorDeadline) break;
    if (now - reported >= kReportInterval) {
      kChiefLog.Info("still waiting for the evaluator", {{"address", address}});
      reported = now;
    }
    if (context_.stop().WaitFor(kEvaluatorPoll)) return;
  }
  kChiefLog.Warning("no longer waiting for the evaluator", {{"address", address}});
}

}  // namespace tfjob::train
