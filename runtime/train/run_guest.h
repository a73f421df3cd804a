// Lets a program that starts a run itself (runtime/api) take part in the run between the steps.
#pragma once

#include "runtime/base/status.h"
#include "runtime/strategy/model/metric_totals.h"
#include "runtime/strategy/strategy.h"

namespace tfjob::train {

class Trainer;

// Called on the thread that trains. If a function returns an error, the run ends with that error in
// this task.
class RunGuest {
 public:
  virtual ~RunGuest() = default;
  // Called when the variables have values, before training continues from run.global_step(). Called
  // again if the variables were rolled back at the end of the run.
  virtual Status OnStart(Trainer& run) = 0;
  // Returns whether OnStep may set the learning rate. The chief then saves a checkpoint that is due
  // after OnStep, so that the checkpoint contains the rate. Otherwise, it saves before, because
  // OnStep may take long.
  virtual bool SetsLearningRate() const { return false; }
  // Returns whether OnStep, after the step that leads to `step`, uses the totals of all steps so
  // far (StepObserver::NeedsTotals).
  virtual bool NeedsTotals(int64_t /*step*/) { return true; }
  // Called after each step of this task, after the chief's other duties. `batch` contains the sums
  // over the task's batch, computed before the update, and those of earlier steps whose sums OnStep
  // has not received.
  virtual Status OnStep(Trainer& run, const strategy::MetricTotals& batch,
                        const strategy::StepOutcome& outcome) = 0;
  // Called after OnStart and OnStep in the chief, if the chief has started to save a checkpoint of
  // this step.
  virtual Status OnCheckpoint(Trainer& /*run*/) { return OkStatus(); }
  // Called after the last step of the run, while the strategy still has the variables. Not called
  // in a task that took no step because the run was already over.
  virtual Status OnEnd(Trainer& run) = 0;
  // Called if the task has been asked to stop, even if the run has reached its last step. The step
  // in progress has then ended, and the chief has saved its checkpoint. The strategy has no
  // variables if the task was still receiving them from another task, or has left the run
  // (Trainer::joined).
  virtual Status OnStop(Trainer& run) { return OnEnd(run); }
  // Called after OnStart if the run ends in this task with an error other than a request to stop.
  // The variables are those of the last step if the strategy still has them (see OnStop), but may
  // be damaged if the error is a state::RunFailure.
  virtual void OnError(Trainer& /*run*/, const Status& /*error*/) {}
};

}  // namespace tfjob::train
