// Evaluates new checkpoints while the only task of an Estimator's job trains. Private to this
// package.
#pragma once

#include <memory>
#include <optional>

#include "runtime/base/clock.h"
#include "runtime/data/source.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/model_dir/summary_writer.h"
#include "runtime/train/run_guest.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"

namespace tfjob::api {

// Evaluates the same checkpoints as tf.estimator.train_and_evaluate: the first one after the one
// from which training starts, later ones if at least `throttle` has passed since the last
// evaluation began, and always the state of the last step.
//
// Owned by the thread that trains. The context must outlive it.
class LocalEvaluations : public train::RunGuest {
 public:
  LocalEvaluations(train::TaskContext& context, std::shared_ptr<const tfjob::data::Source> source,
                   Duration throttle)
      : context_(context), source_(std::move(source)), throttle_(throttle) {}

  tfjob::Status OnStart(train::Trainer& run) override;
  tfjob::Status OnStep(train::Trainer& /*run*/, const strategy::MetricTotals& /*batch*/,
                       const strategy::StepOutcome& /*outcome*/) override {
    return OkStatus();
  }
  tfjob::Status OnCheckpoint(train::Trainer& run) override;
  tfjob::Status OnEnd(train::Trainer& run) override;
  tfjob::Status OnStop(train::Trainer& /*run*/) override { return OkStatus(); }

 private:
  // Returns Cancelled if the process is asked to stop during the evaluation.
  tfjob::Status Evaluate(train::Trainer& run);
  bool WasStopped(const tfjob::Status& evaluated) const;

  train::TaskContext& context_;
  const std::shared_ptr<const tfjob::data::Source> source_;
  const Duration throttle_;
  std::unique_ptr<train::Evaluation> evaluation_;
  std::unique_ptr<train::SummaryWriter> summaries_;
  int64_t start_step_ = 0;
  int64_t evaluated_ = -1;                // the step of the last evaluation
  std::optional<Duration> evaluated_at_;  // when that evaluation began
};

}  // namespace tfjob::api
