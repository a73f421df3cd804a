// Implements the chief's duties besides training: checkpoints, summaries and the end of the job.
#pragma once

#include <memory>

#include "runtime/train/checkpoint_saver.h"
#include "runtime/train/trainer.h"

namespace tfjob::io {
class EventWriter;
}  // namespace tfjob::io

namespace tfjob::train {

class Evaluation;

// Owned by the thread that trains.
class Chief : public StepObserver {
 public:
  Chief(TaskContext& context, Trainer& trainer);
  ~Chief() override;

  // Call before the first step, with a prepared trainer. Detects every reason for refusal (a
  // checkpoint of another model, unusable evaluation data that this task will need, a folder that
  // is not writable), and only then changes model_dir: it creates the folder and removes the end
  // marks of an older run.
  Status Prepare();

  Status OnStart(int64_t step) override;
  Status OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) override;
  Status OnRestore() override;
  Status OnStop() override;

  // Call after the last step. Waits for the other tasks to finish their last steps, and saves.
  // Returns false if the variables were reset to an older checkpoint meanwhile, so that more
  // training is needed.
  StatusOr<bool> SaveLast();

  // Call after SaveLast. Waits for the evaluator if the job has one, and otherwise evaluates if
  // there is evaluation data. Then ends the tasks that only serve.
  Status EndJob();

 private:
  // Returns whether this task evaluates the last checkpoint itself.
  bool Evaluates() const;
  Status PrepareModelDirectory() const;
  Status Save();
  Status Summarise(int64_t step);
  void AwaitWorkers();
  Status EvaluateHere();
  void AwaitEvaluator();

  TaskContext& context_;
  Trainer& trainer_;
  CheckpointSaver saver_;
  std::unique_ptr<Evaluation> evaluation_;   // null unless Evaluates()
  std::unique_ptr<io::EventWriter> events_;  // null without model_dir or summaries
  ReportWindow window_;
  state::Snapshot last_;  // set by SaveLast
};

}  // namespace tfjob::train
