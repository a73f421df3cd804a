// The loop of a task that computes gradients: batches through the strategy until the last global step, with log lines and
// progress.
#pragma once

#include <memory>

#include "runtime/strategy/strategy.h"
#include "runtime/train/report_window.h"
#include "runtime/train/task.h"

namespace tfjob::train {

// What a chief does besides: called by the loop.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // The variables hold values; training goes on from `step`.
  virtual Status OnStart(int64_t step) = 0;
  // After each step of this task.
  virtual Status OnStep(const strategy::MetricTotals& batch,
                        const strategy::StepOutcome& outcome) = 0;
  // Lost variables are about to be filled again, from the last checkpoint.
  virtual Status OnRestore() = 0;
  // Asked to stop, between two steps or in one that was given up.
  virtual Status OnStop() = 0;
};

// Owned by one thread.
class Trainer {
 public:
  explicit Trainer(TaskContext& context);

  // Reads the data, builds the model and the strategy; waits for nobody.
  Status Prepare();
  // Until the last step, or until the chief ended the job. Cancelled when asked to stop. `observer` may be null. May be
  // called again when the step went back.
  Status Train(StepObserver* observer);
  // No further step of this task. Best effort: a closed connection says the same.
  void Leave();

  strategy::Strategy& strategy() { return *strategy_; }
  const strategy::ModelDefinition& definition() const { return definition_; }
  int64_t total_steps() const { return total_steps_; }
  int64_t global_step() const { return global_step_; }

 private:
  StatusOr<std::unique_ptr<strategy::Strategy>> MakeStrategy();
  StatusOr<ps::Snapshot> ProvideState();
  // Whether a worker's wait for others should end: asked to stop, or the run is over.
  bool ShouldNotWait();
  void OnPeerEvent(const ps::Event& event);
  Status Loop();
  StatusOr<strategy::StepOutcome> Step(strategy::MetricTotals& totals);
  Status Stopped();
  Status Stop();
  void Report(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome);
  void LogProgress();
  void ShowProgress();

  TaskContext& context_;
  const int rank_;   // among the tasks that compute gradients
  const int tasks_;  // how many they are; 0: not known
  strategy::ModelDefinition definition_;
  std::shared_ptr<const data::Dataset> dataset_;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<strategy::Strategy> strategy_;
  StepObserver* observer_ = nullptr;
  bool joined_ = false;         // the strategy has started
  bool filled_ = false;         // this task has provided a state before
  bool job_over_ = false;       // the chief ended the job
  Duration looked_for_end_{0};  // when the folder was last asked whether the run is over
  int64_t total_steps_ = 0;
  int64_t steps_per_epoch_ = 1;
  int64_t global_step_ = 0;
  ReportWindow log_window_;
  ReportWindow progress_window_;
};

}  // namespace tfjob::train
