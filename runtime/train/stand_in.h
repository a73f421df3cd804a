// Gives a worker the chief's duties while its group continues without the chief
// (strategy::Strategy::Leads): saving checkpoints, writing summaries, and ending the job. The
// worker continues training even if it cannot carry out these duties. It does not wait for the disk
// when it takes the duties over or hands them back.
#pragma once

#include <memory>
#include <optional>

#include "runtime/train/trainer.h"

namespace tfjob::train {

class Chief;

// Owned by the thread that trains.
class StandIn : public StepObserver {
 public:
  StandIn(TaskContext& context, Trainer& trainer);
  ~StandIn() override;

  Status OnStart(int64_t step) override;
  bool NeedsTotals(int64_t step) override { return chief_ != nullptr && chief_->NeedsTotals(step); }
  Status OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) override;
  Status OnStepEnd(int64_t step) override;
  std::optional<state::Snapshot> OnRestore() override;
  Status OnStop() override;
  Status OnOthersEnding(bool servers) override;
  bool Saves(int64_t step) const override;

  // Call after the last step, after Trainer::Leave. If the task leads its group, saves the last
  // checkpoint and ends the job. Otherwise, does nothing. Returns false if Train must be called
  // again (Chief::SaveLast).
  StatusOr<bool> EndIfLeading();

 private:
  // Takes over the chief's duties, or hands them back, if the group's leader has changed. If the
  // takeover fails, logs the error and retries later.
  void FollowGroup(int64_t step);
  Status TakeOver(int64_t step);

  TaskContext& context_;
  Trainer& trainer_;
  std::unique_ptr<Chief> chief_;  // null unless this task has the chief's duties
  Duration retry_at_{0};          // the earliest time of the next takeover
};

}  // namespace tfjob::train
