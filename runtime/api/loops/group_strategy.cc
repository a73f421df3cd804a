#include "runtime/api/loops/group_strategy.h"

#include <utility>

namespace tfjob::api {

StatusOr<std::unique_ptr<GroupStrategy>> GroupStrategy::Create(strategy::StrategyOptions options,
                                                               int64_t bytes_per_pack) {
  std::unique_ptr<GroupStrategy> made(new GroupStrategy());
  made->provide_state_ = options.provide_state;
  ASSIGN_OR_RETURN(made->replica_, strategy::Replica::Create(std::move(options), bytes_per_pack));
  return made;
}

tfjob::Status GroupStrategy::Connect(steps::StepGroup& group) {
  group_ = nullptr;
  RETURN_IF_ERROR(group.Check(replica_->Connect(group.communicator())));
  group_ = &group;
  return OkStatus();
}

StatusOr<strategy::StepOutcome> GroupStrategy::Start() {
  ASSIGN_OR_RETURN(const state::Snapshot values, provide_state_(nullptr));
  RETURN_IF_ERROR(replica_->Load(values));
  global_step_ = values.global_step;
  return strategy::StepOutcome{.global_step = global_step_};
}

StatusOr<strategy::StepOutcome> GroupStrategy::Step(const tfjob::data::Batch& batch,
                                                    strategy::MetricTotals& totals) {
  const tfjob::Status computed = replica_->Compute(batch, global_step_, shares_);
  if (!computed.ok()) group_->Fail(computed);
  RETURN_IF_ERROR(computed);
  RETURN_IF_ERROR(group_->Check(replica_->Reduce()));
  ASSIGN_OR_RETURN(const bool applied, replica_->Apply(global_step_, totals));
  if (applied) ++global_step_;
  return strategy::StepOutcome{.global_step = global_step_, .skipped = !applied};
}

StatusOr<state::Snapshot> GroupStrategy::TakeSnapshot() {
  ASSIGN_OR_RETURN(const state::SnapshotCopy copy, replica_->BeginSnapshot(global_step_, ""));
  return copy.Finish();
}

}  // namespace tfjob::api
