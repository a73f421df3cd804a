// Implements the role of an evaluator, which watches model_dir for new checkpoints.
#include <algorithm>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/data/source.h"
#include "runtime/exec/device.h"
#include "runtime/rpc/server.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/log.h"
#include "runtime/train/model_dir/checkpoint.h"
#include "runtime/train/model_dir/summary_writer.h"
#include "runtime/train/run_end_watch.h"
#include "runtime/train/task.h"

namespace tfjob::train {
namespace {

constexpr Duration kPoll = 500ms;
// How long the evaluator looks for the last checkpoint after it has learned that the run is over.
constexpr Duration kLastCheckpointPatience = 60s;
constexpr Duration kMarkPatience = 30s;
constexpr Duration kMarkRetry = 2s;

class Evaluator {
 public:
  explicit Evaluator(TaskContext& context)
      : context_(context),
        folder_(context.config().model_dir),
        run_end_(context, /*folder_every=*/0s) {}

  Status Run() {
    RETURN_IF_ERROR(Prepare());
    if (context_.stop().WaitFor(Seconds(context_.config().eval.start_delay_secs))) return Stopped();
    Duration waiting_since = context_.clock().Monotonic();
    while (true) {
      // Before listing the checkpoints, check whether the run has ended; otherwise, the last
      // checkpoint could be missed.
      const std::optional<int64_t> end = run_end_.Ended();
      RETURN_IF_ERROR(run_end_.Failure());
      if (end && damaged_ && *damaged_ >= *end) Retry();
      ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> next, NextCheckpoint(end.has_value()));
      if (next) {
        const Duration start = context_.clock().Monotonic();
        RETURN_IF_ERROR(EvaluateCheckpoint(*next, end && next->step >= *end));
        if (Throttle(start)) return Stopped();
        waiting_since = context_.clock().Monotonic();
        continue;
      }
      if (end && (evaluated_ >= *end || GivesUpOn(*end))) return Finish();
      if (context_.stop().WaitFor(kPoll)) return Stopped();
      ReportWaiting(waiting_since);
    }
  }

 private:
  static Duration Seconds(double seconds) {
    return Duration(static_cast<int64_t>(std::min(seconds, 1e9) * 1e6));
  }
  static Status Stopped() { return Cancelled("the evaluator was asked to stop"); }

  Status Prepare() {
    const config::TrainingConfig& config = context_.config();
    const JobInputs& inputs = context_.inputs();
    if (inputs.eval == nullptr && !config.data.eval.present())
      return InvalidArgument("data.eval: an evaluator needs evaluation data");
    if (folder_.empty())
      return InvalidArgument("model_dir: an evaluator needs the folder of the checkpoints");
    ASSIGN_OR_RETURN(model::Model model, ModelOf(inputs, config));
    ASSIGN_OR_RETURN(auto dataset, DataOf(inputs, config, Split::kEval, model));
    ASSIGN_OR_RETURN(auto definition,
                     DefineModel(config, Split::kEval, *dataset, 1, std::move(model)));
    ASSIGN_OR_RETURN(const exec::Device device, context_.device());
    ASSIGN_OR_RETURN(evaluation_, Evaluation::Create(config, definition, dataset, device));
    RETURN_IF_ERROR(Annotate(MakeDirectories(folder_ + "/eval"), "model_dir"));
    SummaryOptions summaries{
        .folder = folder_ + "/eval",
        .show = [board = &context_.board()](
                    const std::string& problem) { board->ShowProblem("summaries", problem); },
        .files = &context_.files()};
    summaries_ = std::make_unique<SummaryWriter>(std::move(summaries), context_.clock());
    return OkStatus();
  }

  // Returns the oldest checkpoint that has not been evaluated yet. At the end of the run, if
  // throttling may have let checkpoints accumulate, returns the newest one instead, because the
  // chief is waiting for its evaluation. Returns an error only at the end of the run.
  StatusOr<std::optional<io::Checkpoint>> NextCheckpoint(bool ended) {
    StatusOr<std::vector<io::Checkpoint>> listed = io::ListCheckpoints(folder_);
    if (!listed.ok()) {
      if (ended) return listed.status();
      Warn(Annotate(listed.status(), "cannot list the checkpoints; trying again"));
      return std::optional<io::Checkpoint>();
    }
    std::erase_if(*listed, [&](const io::Checkpoint& c) { return c.step <= evaluated_; });
    if (listed->empty()) return std::optional<io::Checkpoint>();
    const bool newest = ended && context_.config().eval.throttle_secs > 0;
    return std::optional<io::Checkpoint>(newest ? listed->back() : listed->front());
  }

  // Shows the error, and logs it unless it is the same as in the previous call.
  void Warn(const Status& error) {
    if (warned_ != Message(error)) kEvaluationLog.Warning(Message(error));
    warned_ = Message(error);
    context_.board().ShowProblem("checkpoints", warned_);
  }

  // Makes NextCheckpoint return the damaged checkpoint once more, because it has turned out to be
  // the last one.
  void Retry() {
    evaluated_ = *damaged_ - 1;
    damaged_.reset();
  }

  // Returns whether to stop waiting for the last checkpoint. The chief may report the end of the
  // run before the folder shows this checkpoint.
  bool GivesUpOn(int64_t end) {
    const Duration now = context_.clock().Monotonic();
    if (!missing_since_) missing_since_ = now;
    if (now - *missing_since_ < kLastCheckpointPatience) return false;
    kEvaluationLog.Warning("the last checkpoint is not in the folder",
                           {{"model_dir", folder_}, {"step", end}});
    return true;
  }

  bool IsListed(const io::Checkpoint& checkpoint) const {
    const StatusOr<std::vector<io::Checkpoint>> listed = io::ListCheckpoints(folder_);
    if (!listed.ok()) return true;
    return std::any_of(listed->begin(), listed->end(), [&](const io::Checkpoint& other) {
      return other.prefix == checkpoint.prefix;
    });
  }

  // Evaluates the checkpoint. If it is damaged, skips it, or returns the error if it is the last
  // one.
  Status EvaluateCheckpoint(const io::Checkpoint& checkpoint, bool last) {
    context_.board().Update([&](progress::Progress& p) {
      p.state = progress::State::kEvaluating;
      p.step = checkpoint.step;
      p.waiting_for.clear();
    });
    evaluated_ = checkpoint.step;
    LoadOptions::Stored stored{.variables = evaluation_->tables(), .values = {}};
    StatusOr<state::Snapshot> snapshot =
        LoadCheckpoint(checkpoint.prefix, evaluation_->definition().state,
                       {.into = nullptr, .pool = context_.pool(), .stored = &stored});
    if (!snapshot.ok()) return OnUnreadable(checkpoint, snapshot.status(), last);
    warned_.clear();
    context_.board().ShowProblem("checkpoints", "");
    ASSIGN_OR_RETURN(const strategy::MetricTotals totals,
                     evaluation_->Run(*snapshot, context_.stop(), stored.values));
    PublishEvaluation(evaluation_->definition(), checkpoint.step, totals, context_.board(),
                      summaries_.get());
    context_.OnEvaluation(checkpoint.step, NamedValues(evaluation_->definition(), totals));
    return OkStatus();
  }

  Status OnUnreadable(const io::Checkpoint& checkpoint, const Status& error, bool last) {
    if (!IsListed(checkpoint)) return OkStatus();  // deleted because there are newer ones
    const bool of_another_model = absl::IsInvalidArgument(error) || absl::IsNotFound(error);
    if (last || of_another_model) return error;
    damaged_ = checkpoint.step;
    Warn(Annotate(error, "a checkpoint cannot be evaluated and is passed over"));
    return OkStatus();
  }

  // Waits until the next evaluation may start or the run is over. Returns true if the task was
  // asked to stop.
  bool Throttle(Duration start) {
    const Duration end = start + Seconds(context_.config().eval.throttle_secs);
    for (;;) {
      const Duration rest = end - context_.clock().Monotonic();
      if (rest <= 0s) return false;
      if (run_end_.Ended()) return false;
      if (context_.stop().WaitFor(std::min(rest, kPoll))) return true;
    }
  }

  void ReportWaiting(Duration& since) {
    context_.board().Update([&](progress::Progress& p) {
      p.state = progress::State::kWaiting;
      p.waiting_for = "a new checkpoint in " + folder_;
    });
    if (context_.clock().Monotonic() - since < kReportInterval) return;
    since = context_.clock().Monotonic();
    kEvaluationLog.Info("waiting for a new checkpoint",
                        {{"model_dir", folder_}, {"evaluated", evaluated_}});
  }

  // Reports that the last checkpoint has been evaluated, with a marker in the folder and on this
  // task's port. The chief waits for one of the two. If the marker cannot be written, keeps this
  // task running until the chief has had time to query the port.
  Status Finish() {
    summaries_->Flush(5s);
    kEvaluationLog.Info("the run is over and its last checkpoint evaluated",
                        {{"step", evaluated_}});
    context_.board().Update([&](progress::Progress& p) {
      p.state = progress::State::kFinished;
      p.run_end = progress::RunEnd{evaluated_, RunFingerprint(context_.run())};
    });
    const Duration start = context_.clock().Monotonic();
    for (;;) {
      const Status marked = MarkFinished(folder_ + "/eval", context_.run(), evaluated_,
                                         context_.clock().Now(), context_.files());
      if (marked.ok()) return OkStatus();
      Warn(Annotate(marked, "the end of the evaluation cannot be marked; trying again"));
      if (context_.clock().Monotonic() - start >= kMarkPatience) return OkStatus();
      if (context_.stop().WaitFor(kMarkRetry)) return Stopped();
    }
  }

  TaskContext& context_;
  const std::string folder_;
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<SummaryWriter> summaries_;
  RunEndWatch run_end_;
  int64_t evaluated_ = -1;          // the newest step handled so far
  std::optional<int64_t> damaged_;  // the newest step that was skipped
  std::optional<Duration> missing_since_;
  std::string warned_;
};

}  // namespace

Status RunEvaluator(TaskContext& context) {
  ASSIGN_OR_RETURN(auto server, context.Serve({}));
  return Evaluator(context).Run();
}

}  // namespace tfjob::train
