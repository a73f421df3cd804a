#include "runtime/train/stand_in.h"

#include "runtime/strategy/strategy.h"
#include "runtime/train/chief.h"
#include "runtime/train/log.h"

namespace tfjob::train {

StandIn::StandIn(TaskContext& context, Trainer& trainer) : context_(context), trainer_(trainer) {}

StandIn::~StandIn() = default;

Status StandIn::FollowGroup(int64_t step) {
  const bool leads = trainer_.strategy().Leads();
  if (leads == (chief_ != nullptr)) return OkStatus();
  if (!leads) {
    kChiefLog.Info("gives the chief's duties back", {{"step", step}});
    chief_ = nullptr;
    return OkStatus();
  }
  kChiefLog.Warning("takes over the chief's duties: the group goes on without the chief",
                    {{"step", step}});
  auto chief = std::make_unique<Chief>(context_, trainer_);
  RETURN_IF_ERROR(chief->Prepare());
  RETURN_IF_ERROR(chief->OnStart(step));
  chief_ = std::move(chief);
  return OkStatus();
}

Status StandIn::OnStart(int64_t step) {
  return FollowGroup(step);
}

Status StandIn::OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) {
  const bool had_duties = chief_ != nullptr;
  RETURN_IF_ERROR(FollowGroup(outcome.global_step));
  return had_duties && chief_ != nullptr ? chief_->OnStep(batch, outcome) : OkStatus();
}

std::optional<state::Snapshot> StandIn::OnRestore() {
  return chief_ == nullptr ? std::nullopt : chief_->OnRestore();
}

Status StandIn::OnStop() {
  return chief_ == nullptr ? OkStatus() : chief_->OnStop();
}

Status StandIn::OnOthersEnding(bool servers) {
  return chief_ == nullptr ? OkStatus() : chief_->OnOthersEnding(servers);
}

bool StandIn::Saves(int64_t step) const {
  return chief_ != nullptr && chief_->Saves(step);
}

Status StandIn::EndIfLeading() {
  if (!trainer_.joined() || !trainer_.strategy().Leads()) return OkStatus();
  RETURN_IF_ERROR(FollowGroup(trainer_.global_step()));
  ASSIGN_OR_RETURN(const bool saved, chief_->SaveLast());
  if (!saved) return Internal("the last state went back to an earlier step");
  return chief_->EndJob();
}

}  // namespace tfjob::train
