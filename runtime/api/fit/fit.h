// Implements the part of CompiledModel::Fit that runs with each training step: counts epochs,
// validates, calls the callbacks, shows the progress and keeps the result. Private to this package.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/compiled_state.h"
#include "runtime/api/fit/epoch_record.h"
#include "runtime/api/fit/progress_bar.h"
#include "runtime/state/snapshot.h"
#include "runtime/strategy/model/metric_totals.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/run_guest.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"

namespace tfjob::api {

struct FitValues {
  std::shared_ptr<const state::Snapshot> snapshot;
};

struct FitPlan {
  int64_t start_step = 0;  // the step from which Fit starts
  int64_t last_step = 0;   // the last step of Fit, unless a callback stops it earlier
  int64_t steps_per_epoch = 1;
  std::shared_ptr<const tfjob::data::Source> validation;  // null for none
};

// Owned by the thread that trains. The model, the options, the context and the config must outlive
// it.
class FitRun : public train::RunGuest, private FitControl {
 public:
  FitRun(const CompiledData& model, const FitOptions& options, const FitPlan& plan,
         const config::TrainingConfig& config, train::TaskContext& context);
  ~FitRun() override;

  tfjob::Status OnStart(train::Trainer& run) override;
  bool SetsLearningRate() const override { return sets_rate_; }
  bool NeedsTotals(int64_t step) override;
  tfjob::Status OnStep(train::Trainer& run, const strategy::MetricTotals& batch,
                       const strategy::StepOutcome& outcome) override;
  tfjob::Status OnCheckpoint(train::Trainer& run) override;
  tfjob::Status OnEnd(train::Trainer& run) override;
  tfjob::Status OnStop(train::Trainer& run) override;
  void OnError(train::Trainer& run, const tfjob::Status& error) override;

  const History& history() const { return record_.history(); }
  // Returns the values at the end of the run, even if the run failed, or null if there are none.
  const std::shared_ptr<const state::Snapshot>& result() const { return result_; }
  // Returns the number of epochs that have started: those in which this task has taken steps, and
  // those that the restored checkpoint contains in whole or in part.
  int64_t epochs_begun() const { return epochs_begun_; }
  // Call if Fit returns an error. Calls OnTrainAbort of the callbacks, unless the run has already
  // done so. The run has not done so if it failed before its start or after its end.
  void Abandon() { Abort(); }
  // Returns the error of a callback, or OK.
  const tfjob::Status& callback_error() const { return callback_error_; }
  // Returns OK if this task has taken part in the run until the last step, or until the step at
  // which a callback stopped training. Otherwise returns Cancelled.
  const tfjob::Status& completed() const { return completed_; }
  // Returns the step at which the run has ended, or 0 unless this task is the chief.
  int64_t run_end() const;

 private:
  int64_t step() const override;
  int64_t epochs() const override { return options_.epochs; }
  bool validates() const override { return plan_.validation != nullptr; }
  bool is_chief() const override { return model_.session->strategy.is_chief(); }
  double learning_rate() const override;
  std::optional<bool> LargerIsBetter(const std::string& metric) const override;
  Status SetLearningRate(double rate) override;
  Status StopTraining() override;
  Status Save(const std::string& path) override;
  Result<CompiledModel> Copy() override;
  Result<std::shared_ptr<const FitValues>> Values() override;
  void EndWith(std::shared_ptr<const FitValues> values) override { end_with_ = std::move(values); }

  // Calls `call` with each callback, in order, until it returns an error.
  template <typename Call>
  tfjob::Status Each(const Call& call);
  tfjob::Status BeginTraining();
  tfjob::Status EndTraining();
  // Gives the callbacks the states that they had at this step, if there are any.
  tfjob::Status RestoreCallbacks();
  // Calls OnTrainAbort of the callbacks whose OnTrainBegin, but not OnTrainEnd, has been called.
  void Abort();
  tfjob::Status CheckCompleted() const;
  // Saves the result of a Fit that another one follows, in the task that has the chief's duties.
  tfjob::Status SaveResult(const train::Trainer& run);
  // Returns a copy of the current values, with all tables. Creates at most one copy per step.
  StatusOr<std::shared_ptr<const state::Snapshot>> Snapshot();
  // Derives the epoch, and the number of its steps so far, from the step that the run has reached.
  void FindPlace(int64_t global_step);
  // Returns the number of steps of the current epoch that precede this step.
  int64_t StepsInEpoch(int64_t global_step) const;
  // `rate_is_set`: see rate_is_set_, for OnEpochBegin.
  tfjob::Status BeginEpoch(bool rate_is_set);
  tfjob::Status BeginBatch();
  tfjob::Status EndEpoch();
  // Returns whether the state contains a learning rate that callbacks of this Fit, in this process
  // or in another one, have set at this step or later.
  bool HasRateSince(int64_t step) const;
  // Returns the step at which the epoch began.
  int64_t BeginOfEpoch() const { return run_->global_step() - steps_; }
  // Ends the current epoch, because another task has ended the training.
  tfjob::Status StoppedByAnother();
  // Validates, and adds the validation metrics to `values`. Returns false if the task was asked to
  // stop during the validation.
  StatusOr<bool> Validate(std::vector<std::pair<std::string, double>>& values);
  Metrics EpochSoFar() const;

  const CompiledData& model_;
  const FitOptions& options_;
  const FitPlan plan_;
  const config::TrainingConfig& config_;
  train::TaskContext& context_;
  train::Trainer* run_ = nullptr;  // set by OnStart
  std::unique_ptr<train::Evaluation> validation_;
  ProgressBar bar_;
  bool wants_batches_ = false;
  bool sets_rate_ = false;  // a callback may change the learning rate
  const bool servers_;      // the variables are on servers, where other tasks change them, too
  bool begun_ = false, epoch_begun_ = false;
  // The numbers of callbacks whose OnTrainBegin and whose OnTrainEnd have been called.
  size_t callbacks_begun_ = 0, callbacks_ended_ = 0;
  bool ended_ = false;     // the training has ended, and OnTrainEnd has been called
  bool stopping_ = false;  // a callback has stopped the training
  // The state already contains the rate that callbacks have set at the place in the run where they
  // are being called, because the run continues from a checkpoint, or from the state of another
  // task. If a callback derives the new rate from the old one, setting it again would be wrong.
  bool rate_is_set_ = false;
  int64_t epoch_ = 0;
  int64_t steps_ = 0;  // steps of this epoch so far
  strategy::MetricTotals totals_;
  int64_t epochs_begun_ = 0;
  bool cut_ = false;  // the task was asked to stop while it validated the epoch
  EpochRecord record_;
  tfjob::Status callback_error_, completed_;
  std::shared_ptr<const FitValues> end_with_;
  std::shared_ptr<const state::Snapshot> taken_;      // after the last step, if it has been copied
  std::shared_ptr<const state::Snapshot> epoch_end_;  // at the end of the last complete epoch
  std::shared_ptr<const state::Snapshot> result_;
};

}  // namespace tfjob::api
