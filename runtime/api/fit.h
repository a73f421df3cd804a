// Takes part in a training run on behalf of CompiledModel::Fit: counts epochs, validates, calls the
// callbacks, shows the progress and keeps the result. Private to this package.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/access.h"
#include "runtime/api/progress_bar.h"
#include "runtime/state/snapshot.h"
#include "runtime/strategy/metric_totals.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/run_guest.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"

namespace tfjob::api {

struct FitValues {
  std::shared_ptr<const state::Snapshot> snapshot;
};

struct FitPlan {
  int64_t start_step = 0;  // the step before the first one of Fit
  int64_t steps_per_epoch = 1;
  std::shared_ptr<const tfjob::data::Source> validation;  // null for none
};

// Owned by the thread that trains. The options, the context and the config must outlive it.
class FitRun : public train::RunGuest, private FitControl {
 public:
  FitRun(const FitOptions& options, const FitPlan& plan, const config::TrainingConfig& config,
         train::TaskContext& context);
  ~FitRun() override;

  tfjob::Status OnStart(train::Trainer& run) override;
  tfjob::Status OnStep(train::Trainer& run, const strategy::MetricTotals& batch,
                       const strategy::StepOutcome& outcome) override;
  tfjob::Status OnEnd(train::Trainer& run) override;

  const History& history() const { return history_; }
  // Returns the values at the end, or after the step at which a callback failed or the task was
  // asked to stop; null if there are none.
  const std::shared_ptr<const state::Snapshot>& result() const { return result_; }

 private:
  int64_t step() const override;
  int64_t epochs() const override { return options_.epochs; }
  bool validates() const override { return plan_.validation != nullptr; }
  Status StopTraining() override;
  Status Save(const std::string& path) override;
  Result<std::shared_ptr<const FitValues>> Values() override;
  void EndWith(std::shared_ptr<const FitValues> values) override { end_with_ = std::move(values); }

  // Calls a function of every callback, in their order. Keeps the values if one fails.
  template <typename Call>
  tfjob::Status Each(const Call& call);
  StatusOr<std::shared_ptr<const state::Snapshot>> Snapshot();
  tfjob::Status BeginEpoch();
  tfjob::Status EndEpoch();
  tfjob::Status Validate(std::vector<std::pair<std::string, double>>& values);
  Metrics EpochSoFar() const;

  const FitOptions& options_;
  const FitPlan plan_;
  const config::TrainingConfig& config_;
  train::TaskContext& context_;
  train::Trainer* run_ = nullptr;  // set by OnStart
  std::unique_ptr<train::Evaluation> validation_;
  ProgressBar bar_;
  bool wants_batches_ = false;
  bool begun_ = false;
  int64_t epoch_ = 0;
  int64_t steps_ = 0;  // steps of this epoch so far
  strategy::MetricTotals totals_;
  History history_;
  std::shared_ptr<const FitValues> end_with_;
  std::shared_ptr<const state::Snapshot> result_;
};

}  // namespace tfjob::api
