// Implements the role of an evaluator, which watches model_dir for new checkpoints.
#include <algorithm>

#include "runtime/data/dataset.h"
#include "runtime/exec/device.h"
#include "runtime/io/event_writer.h"
#include "runtime/rpc/server.h"
#include "runtime/strategy/model_definition.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/job_definition.h"
#include "runtime/train/log.h"
#include "runtime/train/task.h"

namespace tfjob::train {
namespace {

constexpr Duration kPoll = 500ms;

class Evaluator {
 public:
  explicit Evaluator(TaskContext& context)
      : context_(context), folder_(context.config().model_dir) {}

  Status Run() {
    RETURN_IF_ERROR(Prepare());
    if (context_.stop().WaitFor(Seconds(context_.config().eval.start_delay_secs))) return Stopped();
    Duration waiting_since = context_.clock().Monotonic();
    while (true) {
      // Check whether the run has ended before listing its checkpoints, so that the last one is
      // never missed.
      ASSIGN_OR_RETURN(const std::optional<int64_t> finished,
                       FinishedStep(folder_, context_.run()));
      ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> next,
                       NextCheckpoint(finished.has_value()));
      if (next) {
        const Duration start = context_.clock().Monotonic();
        RETURN_IF_ERROR(EvaluateCheckpoint(*next));
        if (Throttle(start)) return Stopped();
        waiting_since = context_.clock().Monotonic();
        continue;
      }
      if (finished) return Finish();
      if (context_.stop().WaitFor(kPoll)) return Stopped();
      ReportWaiting(waiting_since);
    }
  }

 private:
  static Duration Seconds(double seconds) { return Duration(static_cast<int64_t>(seconds * 1e6)); }
  static Status Stopped() { return Cancelled("the evaluator was asked to stop"); }

  Status Prepare() {
    const config::TrainingConfig& config = context_.config();
    if (!config.data.eval.present())
      return InvalidArgument("data.eval: an evaluator needs evaluation data");
    if (folder_.empty())
      return InvalidArgument("model_dir: an evaluator needs the folder of the checkpoints");
    ASSIGN_OR_RETURN(auto dataset, LoadDataset(config.data.eval, config.seed));
    ASSIGN_OR_RETURN(auto definition, DefineModel(config, dataset->feature_shape(), 1));
    ASSIGN_OR_RETURN(evaluation_, Evaluation::Create(config, definition, dataset,
                                                     exec::CpuDevice(context_.pool())));
    ASSIGN_OR_RETURN(events_, io::EventWriter::Create(folder_ + "/eval", context_.clock()));
    return OkStatus();
  }

  // Returns the oldest checkpoint that has not been evaluated yet. At the end of the run, if
  // throttling may have let checkpoints pile up, returns the newest one instead, since the chief is
  // waiting for it.
  StatusOr<std::optional<io::Checkpoint>> NextCheckpoint(bool finished) const {
    ASSIGN_OR_RETURN(std::vector<io::Checkpoint> listed, io::ListCheckpoints(folder_));
    std::erase_if(listed, [&](const io::Checkpoint& c) { return c.step <= evaluated_; });
    if (listed.empty()) return std::optional<io::Checkpoint>();
    const bool newest = finished && context_.config().eval.throttle_secs > 0;
    return std::optional<io::Checkpoint>(newest ? listed.back() : listed.front());
  }

  bool IsListed(const io::Checkpoint& checkpoint) const {
    const StatusOr<std::vector<io::Checkpoint>> listed = io::ListCheckpoints(folder_);
    if (!listed.ok()) return true;
    return std::any_of(listed->begin(), listed->end(), [&](const io::Checkpoint& other) {
      return other.prefix == checkpoint.prefix;
    });
  }

  Status EvaluateCheckpoint(const io::Checkpoint& checkpoint) {
    context_.board().Update([&](progress::Progress& p) {
      p.state = progress::State::kEvaluating;
      p.step = checkpoint.step;
      p.waiting_for.clear();
    });
    evaluated_ = checkpoint.step;
    StatusOr<state::Snapshot> snapshot =
        LoadCheckpoint(checkpoint.prefix, evaluation_->definition().state);
    if (!snapshot.ok() && !IsListed(checkpoint))
      return OkStatus();  // it was deleted in favour of newer ones
    RETURN_IF_ERROR(snapshot.status());
    ASSIGN_OR_RETURN(const strategy::MetricTotals totals,
                     evaluation_->Run(*snapshot, context_.stop()));
    return PublishEvaluation(evaluation_->definition(), checkpoint.step, totals, context_.board(),
                             events_.get());
  }

  // Waits until the next evaluation may start or the run is over. Returns true if asked to stop.
  bool Throttle(Duration start) const {
    const Duration end = start + Seconds(context_.config().eval.throttle_secs);
    for (;;) {
      const Duration rest = end - context_.clock().Monotonic();
      if (rest <= 0s) return false;
      const StatusOr<std::optional<int64_t>> finished = FinishedStep(folder_, context_.run());
      if (!finished.ok() || finished->has_value()) return false;
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

  Status Finish() {
    kEvaluationLog.Info("the run is over and its last checkpoint evaluated",
                        {{"step", evaluated_}});
    context_.board().Update([&](progress::Progress& p) { p.state = progress::State::kFinished; });
    // The chief waits for this mark.
    return MarkFinished(folder_ + "/eval", context_.run(), evaluated_, context_.clock().Now());
  }

  TaskContext& context_;
  const std::string folder_;
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<io::EventWriter> events_;
  int64_t evaluated_ = -1;  // the newest step handled so far
};

}  // namespace

Status RunEvaluator(TaskContext& context) {
  ASSIGN_OR_RETURN(auto server, context.Serve({}));
  return Evaluator(context).Run();
}

}  // namespace tfjob::train
