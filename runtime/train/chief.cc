#include "runtime/train/chief.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_join.h"
#include "runtime/base/file.h"
#include "runtime/base/thread_pool.h"
#include "runtime/exec/device.h"
#include "runtime/io/event_writer.h"
#include "runtime/progress/client.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job_definition.h"
#include "runtime/train/log.h"

namespace tfjob::train {
namespace {

// How long the chief waits at the end of the job: for the workers to leave, for an evaluator that
// does not answer, and for an evaluator that does.
constexpr Duration kWorkersDeadline = 10s;
constexpr Duration kSilentEvaluatorDeadline = 30s;
constexpr Duration kEvaluatorDeadline = 600s;

CheckpointPolicy PolicyOf(const config::TrainingConfig& config) {
  const config::CheckpointTriggers triggers = config::CheckpointEvery(config);
  return {.every_secs = triggers.secs,
          .every_steps = triggers.steps,
          .keep = static_cast<int>(config.keep_checkpoint_max)};
}

}  // namespace

Chief::Chief(TaskContext& context, Trainer& trainer)
    : context_(context),
      trainer_(trainer),
      saver_(context.config().model_dir, trainer.state(), PolicyOf(context.config()),
             context.clock()),
      window_(context.clock()) {}

Chief::~Chief() = default;

bool Chief::Evaluates() const {
  return context_.tf_config().cluster.size("evaluator") == 0 &&
         context_.config().data.eval.present();
}

Status Chief::Prepare() {
  const config::TrainingConfig& config = context_.config();
  if (!config.model_dir.empty()) {
    RETURN_IF_ERROR(CheckLatestCheckpoint(config.model_dir, trainer_.state()));
  }
  if (Evaluates()) {
    ASSIGN_OR_RETURN(auto dataset, LoadDataset(config.data.eval, config.seed));
    ASSIGN_OR_RETURN(evaluation_, Evaluation::Create(config, trainer_.definition(), dataset,
                                                     exec::CpuDevice(context_.pool())));
  }
  return PrepareModelDirectory();
}

Status Chief::PrepareModelDirectory() const {
  const std::string& folder = context_.config().model_dir;
  if (folder.empty()) return OkStatus();
  RETURN_IF_ERROR(Annotate(MakeDirectories(folder), "model_dir"));
  const std::string probe = folder + "/.writable";
  RETURN_IF_ERROR(Annotate(WriteFileAtomically(probe, ""), "model_dir"));
  unlink(probe.c_str());
  RETURN_IF_ERROR(ClearFinished(folder + "/eval"));
  return ClearFinished(folder);
}

Status Chief::OnStart(int64_t step) {
  window_.Reset(step);
  const config::TrainingConfig& config = context_.config();
  if (config.model_dir.empty()) return OkStatus();
  if (config.save_summary_steps > 0) {
    ASSIGN_OR_RETURN(events_, io::EventWriter::Create(config.model_dir, context_.clock()));
    if (step > 0) RETURN_IF_ERROR(events_->AddStart(step));
  }
  ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> latest,
                   io::LatestCheckpoint(config.model_dir));
  if (latest && latest->step == step) {
    saver_.Skip(step);
    return OkStatus();
  }
  return Save();  // so that a lost state can always be restored
}

Status Chief::OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) {
  if (outcome.rolled_back) {
    window_.Reset(outcome.global_step);
    saver_.Skip(outcome.global_step);
    return events_ == nullptr ? OkStatus() : events_->AddStart(outcome.global_step);
  }
  window_.Add(batch, outcome);
  const int64_t every = context_.config().save_summary_steps;
  if (events_ != nullptr && outcome.global_step / every > window_.start_step() / every) {
    RETURN_IF_ERROR(Summarise(outcome.global_step));
  }
  if (saver_.Due(outcome.global_step)) return Save();
  return OkStatus();
}

Status Chief::Summarise(int64_t step) {
  auto values = NamedValues(trainer_.definition(), window_.totals());
  values.emplace_back("global_step/sec", window_.StepsPerSecond(step));
  values.emplace_back("staleness", window_.mean_staleness());
  window_.Reset(step);
  return events_->AddScalars(step, values);
}

Status Chief::Save() {
  if (!saver_.enabled()) return OkStatus();
  ASSIGN_OR_RETURN(state::Snapshot snapshot, trainer_.strategy().TakeSnapshot());
  kChiefLog.Info("saving a checkpoint", {{"step", snapshot.global_step}});
  return saver_.Save(std::move(snapshot));
}

Status Chief::OnRestore() {
  return saver_.Flush();
}

Status Chief::OnStop() {
  if (saver_.last_step() != trainer_.global_step()) RETURN_IF_ERROR(Save());
  return saver_.Flush();
}

StatusOr<bool> Chief::SaveLast() {
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kSaving; });
  if (saver_.last_step() != trainer_.global_step()) RETURN_IF_ERROR(Save());
  AwaitWorkers();
  ASSIGN_OR_RETURN(last_, trainer_.strategy().TakeSnapshot());
  if (last_.global_step < trainer_.total_steps()) {
    kChiefLog.Warning("the variables were rolled back at the end", {{"step", last_.global_step}});
    return false;
  }
  if (!saver_.enabled()) return true;
  if (saver_.last_step() != last_.global_step) RETURN_IF_ERROR(saver_.Save(last_));
  RETURN_IF_ERROR(saver_.Flush());
  RETURN_IF_ERROR(MarkFinished(context_.config().model_dir, context_.run(), last_.global_step,
                               context_.clock().Now()));
  return true;
}

Status Chief::EndJob() {
  if (context_.tf_config().cluster.size("evaluator") > 0) AwaitEvaluator();
  if (Evaluates()) RETURN_IF_ERROR(EvaluateHere());
  trainer_.Leave();
  const Status finished = trainer_.strategy().Finish();
  if (!finished.ok())
    kChiefLog.Warning("could not tell every server that the job is over", {{"error", finished}});
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kFinished; });
  kChiefLog.Info("the job is over",
                 {{"step", last_.global_step}, {"model_dir", context_.config().model_dir}});
  return OkStatus();
}

void Chief::AwaitWorkers() {
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

Status Chief::EvaluateHere() {
  const std::string& folder = context_.config().model_dir;
  context_.board().Update([](progress::Progress& p) { p.state = progress::State::kEvaluating; });
  ASSIGN_OR_RETURN(const strategy::MetricTotals totals, evaluation_->Run(last_, context_.stop()));
  std::unique_ptr<io::EventWriter> events;
  if (!folder.empty()) {
    ASSIGN_OR_RETURN(events, io::EventWriter::Create(folder + "/eval", context_.clock()));
  }
  return PublishEvaluation(trainer_.definition(), last_.global_step, totals, context_.board(),
                           events.get());
}

void Chief::AwaitEvaluator() {
  const std::string& address = context_.tf_config().cluster.address({"evaluator", 0});
  context_.board().Update([&](progress::Progress& p) {
    p.state = progress::State::kWaiting;
    p.waiting_for = StrCat("the evaluator at ", address, " to evaluate the last checkpoint");
  });
  kChiefLog.Info("waiting for the evaluator", {{"address", address}});
  progress::ProgressClient evaluator(address);
  const Duration start = context_.clock().Monotonic();
  Duration heard = start, reported = start;
  while (context_.clock().Monotonic() - start < kEvaluatorDeadline) {
    StatusOr<std::optional<int64_t>> done =
        FinishedStep(context_.config().model_dir + "/eval", context_.run());
    if (done.ok() && *done) return;
    const Duration now = context_.clock().Monotonic();
    if (evaluator.Fetch(2s).ok()) heard = now;
    if (now - heard > kSilentEvaluatorDeadline) break;
    if (now - reported >= kReportInterval) {
      kChiefLog.Info("still waiting for the evaluator", {{"address", address}});
      reported = now;
    }
    if (context_.stop().WaitFor(100ms)) return;
  }
  kChiefLog.Warning("no longer waiting for the evaluator", {{"address", address}});
}

}  // namespace tfjob::train
