// What the chief does besides training: checkpoints, summaries, and the end of the job.
#pragma once

#include <memory>

#include "runtime/io/event_writer.h"
#include "runtime/train/checkpoint_saver.h"
#include "runtime/train/trainer.h"

namespace tfjob::train {

// Owned by the thread that trains.
class Chief : public StepObserver {
 public:
  Chief(TaskContext& context, Trainer& trainer);

  // Makes model_dir and finds out whether it can be written, before anybody waits.
  Status Prepare();

  Status OnStart(int64_t step) override;
  Status OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) override;
  Status OnStop() override;

  // After the last step: waits for the other tasks' last steps, saves, evaluates when the job has no evaluator, waits for
  // the evaluator when it has one, and ends the tasks that only serve.
  Status EndJob();

 private:
  Status Save();
  Status Summarise(int64_t step);
  void AwaitWorkers();
  Status EvaluateHere(const ps::Snapshot& last);
  void AwaitEvaluator();

  TaskContext& context_;
  Trainer& trainer_;
  CheckpointSaver saver_;
  std::unique_ptr<io::EventWriter> events_;  // null without model_dir or summaries
  ReportWindow window_;
};

}  // namespace tfjob::train
