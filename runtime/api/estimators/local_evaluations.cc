#include "runtime/api/estimators/local_evaluations.h"

#include <string>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/state/snapshot.h"
#include "runtime/strategy/model/model_definition.h"

namespace tfjob::api {

tfjob::Status LocalEvaluations::OnStart(train::Trainer& run) {
  throttle_.Start(run.global_step());
  if (evaluation_ != nullptr) return OkStatus();
  ASSIGN_OR_RETURN(const exec::Device device, context_.device());
  ASSIGN_OR_RETURN(evaluation_,
                   train::Evaluation::Create(context_.config(), run.definition(), source_, device));
  const std::string folder = context_.config().model_dir + "/eval";
  RETURN_IF_ERROR(Annotate(MakeDirectories(folder), "model_dir"));
  train::SummaryOptions options{
      .folder = folder,
      .show = [board = &context_.board()](
                  const std::string& problem) { board->ShowProblem("summaries", problem); },
      .files = &context_.files()};
  summaries_ = std::make_unique<train::SummaryWriter>(std::move(options), context_.clock());
  return OkStatus();
}

tfjob::Status LocalEvaluations::OnCheckpoint(train::Trainer& run) {
  if (!throttle_.Wants(run.global_step(), context_.clock().Monotonic())) return OkStatus();
  const tfjob::Status evaluated = Evaluate(run);
  // If the task was asked to stop, return OK: the run itself stops the task.
  return WasStopped(evaluated) ? OkStatus() : evaluated;
}

tfjob::Status LocalEvaluations::OnEnd(train::Trainer& run) {
  if (!throttle_.WantsLast(run.global_step())) return OkStatus();
  const tfjob::Status evaluated = Evaluate(run);
  if (!WasStopped(evaluated)) return evaluated;
  return Cancelled("asked to stop during the evaluation of step ", run.global_step(),
                   ", the last one, of which there is a checkpoint");
}

bool LocalEvaluations::WasStopped(const tfjob::Status& evaluated) const {
  return absl::IsCancelled(evaluated) && context_.stop().requested();
}

tfjob::Status LocalEvaluations::Evaluate(train::Trainer& run) {
  throttle_.Began(context_.clock().Monotonic());
  ASSIGN_OR_RETURN(state::Snapshot snapshot, run.strategy().TakeSnapshot());
  // The last evaluation uses the moving averages, as the last checkpoint does.
  if (run.global_step() >= run.total_steps()) state::UseAverages(run.state(), snapshot);
  ASSIGN_OR_RETURN(const strategy::MetricTotals totals,
                   evaluation_->Run(snapshot, context_.stop()));
  throttle_.Evaluated(snapshot.global_step);
  train::PublishEvaluation(evaluation_->definition(), snapshot.global_step, totals,
                           context_.board(), summaries_.get());
  context_.OnEvaluation(snapshot.global_step,
                        train::NamedValues(evaluation_->definition(), totals));
  return OkStatus();
}

}  // namespace tfjob::api
