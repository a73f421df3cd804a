// Takes single steps together with the other tasks of a job. Private to this package.
#pragma once

#include <memory>
#include <string>

#include "runtime/steps/step_group.h"
#include "runtime/strategy/replica.h"
#include "runtime/strategy/strategy.h"

namespace tfjob::api {

// Unlike a strategy of Fit, leaves it to its owner to form the group, to agree on each step, and to
// give all tasks the same values. After an error, the variables may be those from before the step
// in all tasks, but no further step is possible. Owned by one thread.
class GroupStrategy : public strategy::Strategy {
 public:
  // `provide_state` of the options returns the values that Start fills the variables with.
  static StatusOr<std::unique_ptr<GroupStrategy>> Create(strategy::StrategyOptions options,
                                                         int64_t bytes_per_pack);

  // Describes everything that must be the same in all tasks.
  const std::string& agreement() const { return replica_->agreement(); }
  // All tasks must call Connect before their first step, and if one of them calls it again. The
  // group must outlive the strategy.
  tfjob::Status Connect(steps::StepGroup& group);
  bool connected() const { return group_ != nullptr; }
  // Sets how the examples of the next step are distributed.
  void set_shares(const strategy::Shares& shares) { shares_ = shares; }

  StatusOr<strategy::StepOutcome> Start() override;
  StatusOr<strategy::StepOutcome> Step(const tfjob::data::Batch& batch,
                                       strategy::MetricTotals& totals) override;
  StatusOr<state::Snapshot> TakeSnapshot() override;
  tfjob::Status Leave() override { return OkStatus(); }
  tfjob::Status Finish() override { return OkStatus(); }
  tfjob::Status Fail(const tfjob::Status&) override { return OkStatus(); }
  std::vector<state::PeerState> Peers() override { return {}; }

 private:
  GroupStrategy() = default;

  std::function<StatusOr<state::Snapshot>(const state::Snapshot*)> provide_state_;
  std::unique_ptr<strategy::Replica> replica_;
  steps::StepGroup* group_ = nullptr;
  strategy::Shares shares_;
  int64_t global_step_ = 0;
};

}  // namespace tfjob::api
