#include "runtime/train/stand_in.h"

#include "runtime/strategy/strategy.h"
#include "runtime/train/chief.h"
#include "runtime/train/log.h"

namespace tfjob::train {

namespace {

constexpr Duration kRetryTakeover = 1s;

}  // namespace

StandIn::StandIn(TaskContext& context, Trainer& trainer) : context_(context), trainer_(trainer) {}

StandIn::~StandIn() = default;

void StandIn::FollowGroup(int64_t step) {
  const bool leads = trainer_.strategy().Leads();
  if (leads == (chief_ != nullptr)) return;
  if (!leads) {
    kChiefLog.Info("gives the chief's duties back", {{"step", step}});
    chief_->GiveUp();
    chief_ = nullptr;
    return;
  }
  const Duration now = context_.clock().Monotonic();
  if (now < retry_at_) return;
  const Status taken = TakeOver(step);
  if (taken.ok()) return;
  retry_at_ = now + kRetryTakeover;
  kChiefLog.Error("could not take over the chief's duties; tries again after a step",
                  {{"step", step}, {"error", taken}});
}

// Does not call Chief::Prepare, which waits for the disk and reads the evaluation data. Instead,
// the first save prepares the folder.
Status StandIn::TakeOver(int64_t step) {
  kChiefLog.Warning("takes over the chief's duties: the group goes on without the chief",
                    {{"step", step}});
  auto chief = std::make_unique<Chief>(context_, trainer_);
  const Status started = chief->OnStart(step);
  if (started.ok()) {
    chief_ = std::move(chief);
  } else {
    chief->GiveUp();
  }
  return started;
}

Status StandIn::OnStart(int64_t step) {
  const bool had_duties = chief_ != nullptr;
  FollowGroup(step);
  return had_duties && chief_ != nullptr ? chief_->OnStart(step) : OkStatus();
}

Status StandIn::OnStep(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) {
  const bool had_duties = chief_ != nullptr;
  FollowGroup(outcome.global_step);
  return had_duties && chief_ != nullptr ? chief_->OnStep(batch, outcome) : OkStatus();
}

Status StandIn::OnStepEnd(int64_t step) {
  return chief_ == nullptr ? OkStatus() : chief_->OnStepEnd(step);
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

StatusOr<bool> StandIn::EndIfLeading() {
  if (!trainer_.joined() || !trainer_.strategy().Leads()) return true;
  if (chief_ == nullptr) RETURN_IF_ERROR(TakeOver(trainer_.global_step()));
  ASSIGN_OR_RETURN(const bool saved, chief_->SaveLast());
  if (!saved) return false;
  RETURN_IF_ERROR(chief_->EndJob());
  return true;
}

}  // namespace tfjob::train
