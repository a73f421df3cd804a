// Implements the chief's duties besides training: checkpoints, summaries and the end of the job. If
// the chief is lost and its group continues, another task has these duties (stand_in.h).
#pragma once

#include <functional>
#include <memory>

#include "runtime/train/model_dir/checkpoint_saver.h"
#include "runtime/train/model_dir/model_directory.h"
#include "runtime/train/trainer.h"

namespace tfjob::progress {
class ProgressClient;
}  // namespace tfjob::progress

namespace tfjob::train {

class Evaluation;
class SummaryWriter;

// Owned by the thread that trains.
class Chief : public StepObserver {
 public:
  Chief(TaskContext& context, Trainer& trainer);
  ~Chief() override;

  // Call in the chief before the first step, after Trainer::Prepare. Returns an error if the newest
  // checkpoint is incompatible with the model, if this task is to evaluate but the evaluation data
  // is unusable, or if model_dir is not writable. Creates model_dir, and removes the markers of an
  // earlier run's end (run_mark.h) only after all checks have passed. If several tasks may have the
  // chief's duties in turn, the first save prepares model_dir instead (ModelDirectory::Save),
  // because another task may still be writing to it.
  Status Prepare();

  Status OnStart(int64_t step) override;
  bool NeedsTotals(int64_t step) override { return SummarisesAt(step); }
  Status OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) override;
  Status OnStepEnd(int64_t step) override;
  std::optional<state::Snapshot> OnRestore() override;
  Status OnStop() override;
  Status OnOthersEnding(bool servers) override;
  bool Saves(int64_t step) const override { return begun_save_ == step; }

  // Call after the last step. Waits up to 10 s for the other tasks to finish their last steps,
  // saves the last checkpoint, and marks the run as ended. Returns false if Train must be called
  // again: because the variables were rolled back to an older checkpoint while the state was being
  // saved, because a server was lost before its tables were saved, or because this task has lost
  // the right to write (another task may have taken over). Returns Unavailable, with a message that
  // names the step, if the checkpoint could not be saved within final_save_secs, and Cancelled if
  // the task was asked to stop.
  StatusOr<bool> SaveLast();

  // Call after SaveLast has returned true. If the job has an evaluator, waits until it has
  // evaluated the last checkpoint. Otherwise, evaluates the last checkpoint in this task if there
  // is evaluation data. Then makes the parameter-server tasks exit, even if the evaluation failed,
  // and returns the evaluation's error.
  Status EndJob();

  // Stops performing the duties, without waiting for the disk. Afterwards, only the destructor may
  // be called.
  void GiveUp();

 private:
  // Returns whether this task evaluates the last checkpoint itself.
  bool Evaluates() const;
  Status PrepareEvaluation();
  std::shared_ptr<ModelDirectory> MakeDirectory() const;
  SaverOptions SaverOptionsOf() const;
  std::unique_ptr<SummaryWriter> WriteSummariesTo(const std::string& folder);
  void SummariseGraph();
  Status SaveIfDue(int64_t step);
  // If the run's claim could not be written when the run began, writes it with the next checkpoint.
  void ExpectClaim();
  // If the save that OnOthersEnding deferred is due, requests a save at the next opportunity
  // (CheckpointSaver::Require).
  void RequirePutOffSave();
  // Returns the state that is being written if it has the step `step`, and otherwise a new copy of
  // the current state.
  StatusOr<state::Snapshot> StateOf(int64_t step);
  bool SummarisesAt(int64_t step) const;
  void Summarise(int64_t step);
  void AwaitWorkers();
  Status EvaluateHere();
  StatusOr<strategy::MetricTotals> EvaluateLast();
  bool EvaluatorIsDone(progress::ProgressClient& evaluator, Duration now, Duration& heard);
  void AwaitEvaluator();

  TaskContext& context_;
  Trainer& trainer_;
  // Null if only this task may have the chief's duties. If several tasks may have them in turn,
  // returns an error unless this task has the right to write.
  const std::function<Status()> may_write_;
  const std::shared_ptr<LateClaim> late_claim_ = std::make_shared<LateClaim>();
  // Null without model_dir. The saver's thread may use the directory until the thread ends.
  const std::shared_ptr<ModelDirectory> directory_;
  CheckpointSaver saver_;
  std::unique_ptr<Evaluation> evaluation_;    // null until PrepareEvaluation
  std::unique_ptr<SummaryWriter> summaries_;  // null without model_dir or summaries
  ReportWindow window_;
  int64_t begun_save_ = -1;          // the step of the last save that was started between steps
  std::optional<Duration> save_at_;  // when to save because workers were asked to stop
  state::Snapshot last_;             // set by SaveLast
};

}  // namespace tfjob::train
