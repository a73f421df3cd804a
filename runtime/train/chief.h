// What the chief does besides training: checkpoints, summaries, and the end of the job.
#pragma once

#include <memory>

#include "runtime/io/event_writer.h"
#include "runtime/train/checkpoint_saver.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/trainer.h"

namespace tfjob::train {

// Owned by the thread that trains.
class Chief : public StepObserver {
 public:
  Chief(TaskContext& context, Trainer& trainer);

  // Before the first step, with a trainer that is prepared: finds everything that can be refused (a checkpoint of another
  // model, evaluation data that this task will need, a folder that cannot be written), and only then touches model_dir: it
  // makes the folder, and takes back the mark of an older run's end.
  Status Prepare();

  Status OnStart(int64_t step) override;
  Status OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) override;
  Status OnRestore() override;
  Status OnStop() override;

  // After the last step: waits for the other tasks' last steps and saves. False when the variables went back to an older
  // checkpoint meanwhile, so that there is more to train.
  StatusOr<bool> SaveLast();

  // After SaveLast: evaluates when the job has no evaluator, waits for the evaluator when it has one, and ends the tasks
  // that only serve.
  Status EndJob();

 private:
  // Whether this task evaluates the last checkpoint itself.
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
  ps::Snapshot last_;  // SaveLast's
};

}  // namespace tfjob::train
