// Runs the loop of a task that computes gradients: passes batches to the strategy until the last
// global step, and reports to the log and the task's ProgressBoard.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "runtime/state/peer.h"
#include "runtime/state/snapshot.h"
#include "runtime/train/report_window.h"
#include "runtime/train/run_end_watch.h"
#include "runtime/train/skipped_batches.h"
#include "runtime/train/step_profile.h"
#include "runtime/train/task.h"

namespace tfjob::collectives {
class Endpoint;
}  // namespace tfjob::collectives
namespace tfjob::data {
struct Batch;
class Pipeline;
class Source;
}  // namespace tfjob::data
namespace tfjob::strategy {
struct ModelDefinition;
struct RunClaim;
class Strategy;
}  // namespace tfjob::strategy

namespace tfjob::train {

class Evaluation;

// Hooks that the loop calls, for the chief's other duties.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // Called when the variables have values, before training continues from `step`.
  virtual Status OnStart(int64_t step) = 0;
  // Returns whether OnStep, after the step that leads to `step`, uses the totals of all steps so
  // far. If not, a strategy may keep them on its device, and OnStep after a later step receives
  // them.
  virtual bool NeedsTotals(int64_t /*step*/) { return true; }
  // Called after each of this task's steps. `batch` contains the totals of the task's steps since
  // the last call that received totals, usually those of one batch.
  virtual Status OnStep(const strategy::MetricTotals& batch,
                        const strategy::StepOutcome& outcome) = 0;
  // Called after OnStep, unless the variables were rolled back. A state that is saved here contains
  // what a guest has set (run_guest.h).
  virtual Status OnStepEnd(int64_t /*step*/) { return OkStatus(); }
  // Called if the variables have no values, before this task fills them from the last checkpoint
  // or, if there is none, with initial values. Returns a newer state to use instead of that
  // checkpoint, or nullopt.
  virtual std::optional<state::Snapshot> OnRestore() = 0;
  // Called if the task has been asked to stop, after the step in progress has ended or been
  // abandoned.
  virtual Status OnStop() = 0;
  // Called if other tasks have been asked to stop, between two steps or during a long step.
  // `servers` is true if some of those tasks are servers, whose state is lost unless the observer
  // copies it now.
  virtual Status OnOthersEnding(bool servers) = 0;
  // Returns whether OnStart or OnStepEnd has started to save a checkpoint of this step.
  virtual bool Saves(int64_t /*step*/) const { return false; }
};

// Owned by one thread.
class Trainer {
 public:
  // `endpoint` may be null (strategy::MakeEndpoint), and must outlive the trainer.
  Trainer(TaskContext& context, collectives::Endpoint* endpoint);
  ~Trainer();

  // Reads the data and builds the model and the strategy. Does not wait for any other task.
  Status Prepare();
  // Trains until the last step or until the chief ends the job. Returns Cancelled if the task was
  // asked to stop, and state::RunFailure if the run has failed, in this task or another one.
  // `observer` may be null. Train may be called again if the variables were rolled back.
  Status Train(StepObserver* observer);
  // Announces that this task takes no further steps. If the announcement fails, closing the
  // connection later has the same effect. Returns false if training must continue because the
  // variables were rolled back to an earlier step.
  bool Leave();

  // The next three functions may be called only after Prepare has succeeded.
  strategy::Strategy& strategy() { return *strategy_; }
  const strategy::ModelDefinition& definition() const { return *definition_; }
  const state::TrainingState& state() const;
  int64_t total_steps() const { return total_steps_; }
  int64_t global_step() const { return global_step_; }
  // Returns whether another task has ended the job.
  bool job_over() const { return job_over_; }
  // Returns whether this task takes part in the run, that is, whether its strategy has started.
  bool joined() const { return joined_; }
  // Returns the sums of the evaluation data, with the state after the latest step, of which
  // `snapshot` is a copy. Observers may call this function between steps. Tasks that share batches
  // share the evaluation (Strategy::Validate), so all of them must call Validate after the same
  // step. Returns nullopt if the run has ended in the meantime, or continues from another step
  // (global_step). Returns Cancelled if this task was asked to stop.
  StatusOr<std::optional<strategy::MetricTotals>> Validate(Evaluation& evaluation,
                                                           const state::Snapshot& snapshot);
  // Ends the run, for all tasks, after the latest step. Observers may call this function. With
  // all-reduce, waits until the other tasks have reached this step. Returns Unimplemented if other
  // tasks train with parameter servers, because they would continue.
  //
  // If the variables were rolled back during the call, returns OK although the run has not ended
  // (total_steps); observers then learn of the rollback. If the run has failed, also makes Train
  // return this error.
  Status EndHere();

 private:
  // Loads model.weights into start_ if this task needs the weights. Prepare calls this function, so
  // a task whose file is incompatible fails before it has changed anything.
  Status LoadWeights();
  StatusOr<std::unique_ptr<strategy::Strategy>> MakeStrategy();
  // Returns the newest state that was saved or is being saved, or nullopt if there is none. May use
  // the memory of `into`, unless `into` is null.
  StatusOr<std::optional<state::Snapshot>> SavedState(const state::Snapshot* into);
  // Returns the state with which to fill the parameter servers, or this task's variables.
  StatusOr<state::Snapshot> ProvideState(const state::Snapshot* into);
  // See strategy::TrainingTask::claim_run.
  StatusOr<strategy::RunClaim> ClaimRun();
  // Returns whether a task of this job's present attempt has already provided a first state. Also
  // returns true if this is unknown, because model_dir cannot be read or contains a checkpoint but
  // no claim.
  bool BeginsAgain() const;
  // Returns InvalidArgument if any task may take over the chief's duties, but there is no
  // model_dir.
  Status CheckHasModelDir() const;
  // Waits until model_dir contains the claim of the task that provided the first state. Returns
  // Unavailable if the claim does not appear in time, because the volume might not be mounted yet.
  // Returns OK if this task was asked to stop, or the run has ended.
  Status AwaitClaim(int64_t first_term);
  // Calls AwaitClaim at the beginning of a run in which any task may take over the chief's duties.
  // Returns state::RunFailure if this task does not share model_dir with the others.
  Status CheckSharesModelDir();
  // Returns whether a worker should stop waiting for other tasks, because it was asked to stop or
  // the run is over.
  bool ShouldNotWait();
  void OnPeerEvent(const state::PeerEvent& event);
  void ShowAbsent(const state::PeerEvent& event);
  Status Loop();
  // Takes a step, and reports it to the observer.
  Status StepOnce(strategy::MetricTotals& totals);
  Status Observe(const strategy::MetricTotals& totals, const strategy::StepOutcome& outcome);
  // Tells the observer of a rollback that EndHere has found.
  Status RollBack();
  // Returns the observer's result or, if it has called EndHere and the run has failed, that error.
  Status OrEndError(const Status& observed) const;
  // Returns null if the batch cannot be read.
  const data::Batch* NextBatch();
  StatusOr<strategy::StepOutcome> Step(strategy::MetricTotals& totals);
  // Makes the pipeline continue after the batches that, according to the outcome, have been drawn.
  // Sets the part of each batch that the outcome assigns to this task.
  void Reposition(const strategy::StepOutcome& outcome);
  // Continues from the state of the outcome, which need not follow a step of this task.
  void MoveTo(strategy::StepOutcome outcome);
  Status TellOfEndings();
  void OnLateStep();
  Status Stopped();
  Status Stop();
  // Returns whether the step that leads to `step` is followed by a report of the totals so far.
  bool NeedsTotals(int64_t step);
  bool LogsAt(int64_t step) const;
  void Report(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome);
  void LogProgress();
  void ShowProgress();
  void ShowStuck(const std::vector<state::PeerState>& peers);

  TaskContext& context_;
  collectives::Endpoint* const endpoint_;
  const int rank_;   // rank among the tasks that compute gradients
  const int tasks_;  // number of tasks that compute gradients; 0 if unknown
  std::unique_ptr<strategy::ModelDefinition> definition_;  // set by Prepare, like the next three
  std::shared_ptr<const data::Source> source_;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<strategy::Strategy> strategy_;
  StepObserver* observer_ = nullptr;
  bool joined_ = false;                   // the strategy has started
  std::optional<state::Snapshot> start_;  // the state to start from, until it is provided
  bool filled_ = false;                   // this task has provided a state
  bool job_over_ = false;                 // the chief ended the job
  // Whether training tasks (or servers) were asked to stop, but the observer has not been notified
  // yet. Set on any thread.
  std::atomic<bool> trainers_end_ = false, servers_end_ = false;
  int64_t total_steps_ = 0;
  std::optional<strategy::StepOutcome> rolled_back_;  // see RollBack
  Status end_error_;                                  // why EndHere could not end the run
  int64_t steps_per_epoch_ = 1;
  int64_t global_step_ = 0;
  RunEndWatch run_end_;
  SkippedBatches skipped_, stale_;
  ReportWindow log_window_;
  ReportWindow progress_window_;
  bool show_progress_ = false;  // whether to show the progress after the step
  StepProfile profile_;
};

}  // namespace tfjob::train
