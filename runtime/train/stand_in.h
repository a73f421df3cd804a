// Gives a worker the chief's duties while its group continues without the chief
// (strategy::Strategy::Leads): saving checkpoints, writing summaries, and ending the job.
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
  Status OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) override;
  std::optional<state::Snapshot> OnRestore() override;
  Status OnStop() override;
  Status OnOthersEnding(bool servers) override;
  bool Saves(int64_t step) const override;

  // Call after the last step, once the task has left. If the task leads its group, saves the last
  // checkpoint and ends the job. Otherwise, does nothing.
  Status EndIfLeading();

 private:
  // Takes over the chief's duties, or gives them back, if the group's leader has changed.
  Status FollowGroup(int64_t step);

  TaskContext& context_;
  Trainer& trainer_;
  std::unique_ptr<Chief> chief_;  // null unless this task has the chief's duties
};

}  // namespace tfjob::train
