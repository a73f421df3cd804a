// Evaluates new checkpoints while an Estimator trains in a single task. Private to this package.
#pragma once

#include <memory>
#include <utility>

#include "runtime/api/estimators/evaluation_throttle.h"
#include "runtime/base/clock.h"
#include "runtime/data/source.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/model_dir/summary_writer.h"
#include "runtime/train/run_guest.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"

namespace tfjob::api {

// EvaluationThrottle determines which checkpoints are evaluated. Owned by the thread that trains.
// The context must outlive it.
class LocalEvaluations : public train::RunGuest {
 public:
  LocalEvaluations(train::TaskContext& context, std::shared_ptr<const tfjob::data::Source> source,
                   Duration throttle)
      : context_(context), source_(std::move(source)), throttle_(throttle) {}

  tfjob::Status OnStart(train::Trainer& run) override;
  bool NeedsTotals(int64_t /*step*/) override { return false; }
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
  EvaluationThrottle throttle_;
  std::unique_ptr<train::Evaluation> evaluation_;
  std::unique_ptr<train::SummaryWriter> summaries_;
};

}  // namespace tfjob::api
