// Defines how a training step is carried out across the tasks of a job. A strategy turns batches
// into updates of the variables, wherever the variables are stored. train/ uses the strategy that
// select.h chooses, without knowing which one it is.
//
// Only one thread may use a strategy, except that any thread may call Peers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/state/peer.h"
#include "runtime/state/snapshot.h"
#include "runtime/state/snapshot_copy.h"
#include "runtime/state/work_phase.h"
#include "runtime/strategy/model/metric_totals.h"
#include "runtime/strategy/model/validation.h"

namespace tfjob::data {
struct Batch;
}  // namespace tfjob::data

namespace tfjob::strategy {

struct StepOutcome {
  int64_t global_step = 0;  // after the step
  int64_t staleness = 0;  // updates by others between reading the values and applying this gradient
  bool dropped = false;  // the gradient was not applied: it was too late for its step, or too stale
  bool rolled_back = false;  // the variables have been reset to a checkpoint since the last outcome
  bool skipped = false;      // the batch was skipped because its numbers are not finite
  bool run_ended = false;    // a task has ended the run (EndRun); no task takes a further step
  // The number of this task's batches that count as drawn in the current state of the variables. If
  // the task has drawn more batches, the batches after this position must be drawn again, because
  // the variables were rolled back, or because a gradient was dropped and no other task replaces
  // it.
  int64_t drawn = 0;
  // If tasks share batches: the part of each batch that this task processes from the next batch on,
  // as in data::PartOf. If `ranks` is 0, the part never changes.
  int rank = 0, ranks = 0;
};

struct ValidationOutcome {
  // The sums over the whole validation, equal in all tasks that share it. Nullopt if there are
  // none, because training continues from a state other than the one that was to be validated.
  std::optional<MetricTotals> totals;
  // Set if tasks share batches: where training continues. During the validation, the group may have
  // lost or admitted tasks, and training may continue from another step.
  std::optional<StepOutcome> next;
};

// Describes a run in a model_dir that several tasks may write to in turn.
struct RunClaim {
  int64_t first_term = 0;  // less than all terms (io::WriteRight) of the run
  // The task that provided the run's first state has written first_term to its model_dir.
  bool written = false;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // Waits until the variables have values. The chief fills them if they have none. Returns the
  // global step and the position in the data to continue from.
  virtual StatusOr<StepOutcome> Start() = 0;
  // Runs the forward pass, the backward pass and the update on `batch`, which must be the task's
  // next batch: the one after the first N batches, where N is StepOutcome::drawn of the last
  // outcome. Adds the batch's loss and metrics, as they were before the update, to `totals`, unless
  // the batch is skipped. Returns state::RunFailure if the run must stop because this or another
  // task found numbers that are not finite; the variables may then be damaged.
  //
  // A strategy may return before the device has computed the step, and keep its totals on the
  // device (TakeTotals). The next call of Step, TakeTotals, TakeSnapshot, BeginSnapshot or
  // SetLearningRate that waits for the step then returns its error, if any. This step and the
  // steps after it have changed no variable. The error is returned once; afterwards, the strategy
  // is in the state before the step.
  virtual StatusOr<StepOutcome> Step(const data::Batch& batch, MetricTotals& totals) = 0;
  // Waits for the steps that the device is still computing, and adds to `totals` what Step has left
  // on the device since the last call. Returns the error of such a step.
  virtual Status TakeTotals(MetricTotals& /*totals*/) { return OkStatus(); }
  // Returns the variables that are too large for a task, as indices in TrainingState, in ascending
  // order. These variables are streamed in the snapshots that the strategy returns, and may be
  // streamed in a snapshot that it receives (StrategyOptions::provide_state).
  virtual std::span<const int> tables() const { return {}; }
  // Returns a copy of variables, slots and step. Call between steps. Tables of the copy can be read
  // as long as the strategy exists and no task that stores them is lost. Returns state::RunFailure
  // if the variables are not finite, and the steps have not checked them.
  virtual StatusOr<state::Snapshot> TakeSnapshot() = 0;
  // Like TakeSnapshot, but may leave the copying to the thread that calls SnapshotCopy::Finish,
  // while training continues. Before a step overwrites a value that has not been copied, the step
  // copies the value itself or, if another thread is copying the value, waits for that thread. The
  // copy may outlive the strategy.
  virtual StatusOr<state::SnapshotCopy> BeginSnapshot() { return TakeSnapshot(); }
  // Ends the run for all tasks, before its last step: no task takes a further step. Call between
  // steps. If several tasks train, waits until the others have reached this step, which they learn
  // from StepOutcome::run_ended or from their own call of EndRun. Returns Unimplemented if other
  // training tasks cannot be notified.
  //
  // If the variables were rolled back while this task waited, the run has not ended, and the
  // outcome has `rolled_back` set instead of `run_ended`.
  virtual StatusOr<StepOutcome> EndRun() {
    return Unimplemented("training cannot end before its last step, because the other tasks of ",
                         "the run would continue");
  }
  // Sets the learning rate of the next update and of all later ones. Call between steps. If several
  // tasks train, the first task of the group, or the chief with parameter servers, decides for all
  // of them: its rate applies in all tasks from the same update on. The other tasks may call this
  // function, too; their rates apply only if they have become the first task before the next step.
  // Snapshots contain the rate, and a task that receives a state receives its rate. Returns
  // FailedPrecondition if the optimizer has a schedule, and InvalidArgument if it does not accept
  // the rate.
  virtual Status SetLearningRate(double /*rate*/) {
    return Unimplemented("this strategy cannot change the learning rate");
  }
  // Returns the rate that SetLearningRate has set, in this task or in another one, as far as this
  // task knows. Returns nullopt if the optimizer's own rate applies.
  virtual std::optional<state::LearningRate> learning_rate() const { return std::nullopt; }
  // Validates the state after the latest step. Call between steps. If tasks share batches, all of
  // them call Validate after the same step; each evaluates a part, and all get the sums of all
  // parts. If a task is lost during the validation, the others repeat it. After the last step of
  // the run, each task evaluates everything itself. A task that has joined the group since the step
  // takes part without calling Validate. Returns FailedPrecondition if the tasks' agreements
  // differ, and propagates errors from validation.evaluate.
  virtual StatusOr<ValidationOutcome> Validate(const Validation& validation) {
    MetricTotals totals;
    RETURN_IF_ERROR(validation.evaluate({}, totals));
    return ValidationOutcome{.totals = std::move(totals), .next = std::nullopt};
  }
  // Announces that this task takes no further steps. Other tasks may continue. Returns Aborted if
  // the variables have been rolled back to an earlier step. This task must then continue to train,
  // starting with Start.
  virtual Status Leave() = 0;
  // Leaves because the task was asked to exit. If another task is the chief, the chief then saves a
  // checkpoint.
  virtual Status Withdraw() { return Leave(); }
  // Returns whether other tasks may still change the variables after this task has taken the last
  // step of the run.
  virtual bool OthersContinue() const { return true; }
  // Ends the job. The parameter-server tasks then exit. Only the chief calls this, as its last
  // call.
  virtual Status Finish() = 0;
  // Ends the job with this error (state::RunFailure) in all tasks. The parameter servers pass
  // `failure` on to every task, and exit with it once the chief has also called Fail.
  virtual Status Fail(const Status& failure) = 0;
  virtual std::vector<state::PeerState> Peers() = 0;
  // Announces that this task works on something other than a step, for at most `limit`, or, with
  // kNone, that it no longer does. See AnnouncedPhase. Has no effect if no other task waits for
  // this one.
  virtual void Announce(state::WorkPhase /*phase*/, Duration /*limit*/) {}
  // Returns whether this task now has the chief's duties although it might not be the chief,
  // because its group continues without the chief. The result may change in Start, Step and Leave.
  // If Leads is true after Leave, no task has left, and this task must end the job.
  virtual bool Leads() const { return false; }
  // Returns a function that reports whether this task, if it has the chief's duties, may now write
  // to model_dir. The function returns false if another task may have taken over these duties. Any
  // thread may call the function, even after the strategy has been destroyed.
  virtual std::function<bool()> WriteGuard() {
    return [] { return true; };
  }
  // Returns the term (io::WriteRight) of the current state of the variables if this task has the
  // chief's duties. Returns 0 if no other task can take over these duties.
  virtual int64_t WriteTerm() const { return 0; }
  // Returns the claim that the task that provided the run's first state has written
  // (TrainingTask::claim_run). Call after Start.
  virtual RunClaim Claim() const { return {}; }
  // Records that the claim, which could not be written at the beginning of the run, has been
  // written by this task, which has the chief's duties. Call between steps.
  virtual void NoteClaimWritten() {}
  // Returns a clause for user messages that describes how the other tasks treat a stuck task
  // (state::PeerHealth::kStuck).
  virtual std::string_view AboutStuckTasks() const {
    return "no longer waited for; others compute what is missing";
  }
};

// Announces a phase for as long as the object exists. Phases are not nested.
class AnnouncedPhase {
 public:
  AnnouncedPhase(Strategy& strategy, state::WorkPhase phase,
                 Duration limit = state::kUsualPhaseLimit)
      : strategy_(strategy) {
    strategy_.Announce(phase, limit);
  }
  ~AnnouncedPhase() { strategy_.Announce(state::WorkPhase::kNone, Duration(0)); }
  AnnouncedPhase(const AnnouncedPhase&) = delete;
  AnnouncedPhase& operator=(const AnnouncedPhase&) = delete;

 private:
  Strategy& strategy_;
};

}  // namespace tfjob::strategy
