// Implements the roles of chief and worker.
#include <optional>

#include "runtime/cluster/termination_message.h"
#include "runtime/collectives/endpoint/endpoint.h"
#include "runtime/rpc/server.h"
#include "runtime/state/run_failure.h"
#include "runtime/strategy/select.h"
#include "runtime/train/chief.h"
#include "runtime/train/log.h"
#include "runtime/train/run_failure_record.h"
#include "runtime/train/run_guest.h"
#include "runtime/train/stand_in.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"

namespace tfjob::train {

namespace {

// Calls the chief's observer, which may be null, and then the guest.
class WithGuest : public StepObserver {
 public:
  WithGuest(StepObserver* own, RunGuest& guest, Trainer& trainer)
      : own_(own), guest_(guest), trainer_(trainer) {}

  Status OnStart(int64_t step) override {
    if (own_ != nullptr) RETURN_IF_ERROR(own_->OnStart(step));
    RETURN_IF_ERROR(guest_.OnStart(trainer_));
    return TellOfSave(step);
  }
  bool NeedsTotals(int64_t step) override {
    return guest_.NeedsTotals(step) || (own_ != nullptr && own_->NeedsTotals(step));
  }
  Status OnStep(const strategy::MetricTotals& batch,
                const strategy::StepOutcome& outcome) override {
    if (own_ != nullptr) RETURN_IF_ERROR(own_->OnStep(batch, outcome));
    const bool saves_first = own_ != nullptr && !outcome.rolled_back && !guest_.SetsLearningRate();
    if (saves_first) RETURN_IF_ERROR(own_->OnStepEnd(outcome.global_step));
    const Status told = guest_.OnStep(trainer_, batch, outcome);
    // The step itself was good, so its checkpoint is saved if it is due.
    if (absl::IsAborted(told) && !outcome.rolled_back) (void)OnStepEnd(trainer_.global_step());
    return told;
  }
  Status OnStepEnd(int64_t step) override {
    if (own_ != nullptr && guest_.SetsLearningRate()) RETURN_IF_ERROR(own_->OnStepEnd(step));
    return TellOfSave(step);
  }
  std::optional<state::Snapshot> OnRestore() override {
    return own_ == nullptr ? std::nullopt : own_->OnRestore();
  }
  Status OnStop() override {
    if (own_ != nullptr) RETURN_IF_ERROR(own_->OnStop());
    return guest_.OnStop(trainer_);
  }
  Status OnOthersEnding(bool servers) override {
    return own_ == nullptr ? OkStatus() : own_->OnOthersEnding(servers);
  }

 private:
  Status TellOfSave(int64_t step) {
    return own_ != nullptr && own_->Saves(step) ? guest_.OnCheckpoint(trainer_) : OkStatus();
  }

  StepObserver* const own_;
  RunGuest& guest_;
  Trainer& trainer_;
};

// Forwards all calls to a guest, and ensures that the guest is notified of how its run ends.
class InformedGuest : public RunGuest {
 public:
  explicit InformedGuest(RunGuest& guest) : guest_(guest) {}

  Status OnStart(Trainer& run) override {
    started_ = true;
    ended_ = false;
    return guest_.OnStart(run);
  }
  bool NeedsTotals(int64_t step) override { return guest_.NeedsTotals(step); }
  Status OnStep(Trainer& run, const strategy::MetricTotals& batch,
                const strategy::StepOutcome& outcome) override {
    return guest_.OnStep(run, batch, outcome);
  }
  bool SetsLearningRate() const override { return guest_.SetsLearningRate(); }
  Status OnCheckpoint(Trainer& run) override { return guest_.OnCheckpoint(run); }
  Status OnEnd(Trainer& run) override {
    ended_ = true;
    return guest_.OnEnd(run);
  }
  Status OnStop(Trainer& run) override {
    ended_ = true;
    return guest_.OnStop(run);
  }

  // Notifies the guest that the run has ended with `error`, unless it has already been notified of
  // the end.
  void Tell(Trainer& run, const Status& error, bool stopped) {
    if (!started_) return;
    if (!stopped) return guest_.OnError(run, error);
    if (ended_) return;
    // The loop has not notified the guest of the request to stop, for example because the task was
    // asked to stop while the last checkpoint was being written.
    const Status told = OnStop(run);
    if (!told.ok()) kTrainLog.Warning("stops without the last state", {{"because", told}});
  }

 private:
  RunGuest& guest_;
  bool started_ = false, ended_ = false;
};

// Trains with an observer and a guest. Both may be null.
Status TrainWith(Trainer& trainer, StepObserver* observer, RunGuest* guest) {
  if (guest == nullptr) return trainer.Train(observer);
  WithGuest both(observer, *guest, trainer);
  return trainer.Train(&both);
}

Status RunChief(TaskContext& context, Trainer& trainer, RunGuest* guest) {
  Chief chief(context, trainer);
  RETURN_IF_ERROR(chief.Prepare());
  while (true) {
    RETURN_IF_ERROR(TrainWith(trainer, &chief, guest));
    const bool goes_on = context.config().strategy.on_failure == config::OnFailure::kShrink;
    if (goes_on && trainer.job_over()) return OkStatus();  // another task has ended the job
    ASSIGN_OR_RETURN(const bool saved, chief.SaveLast());
    if (!saved) continue;
    if (guest != nullptr && trainer.joined()) RETURN_IF_ERROR(guest->OnEnd(trainer));
    return chief.EndJob();
  }
}

Status RunWorker(TaskContext& context, Trainer& trainer, RunGuest* guest) {
  StandIn stand_in(context, trainer);
  while (true) {
    RETURN_IF_ERROR(TrainWith(trainer, &stand_in, guest));
    if (guest != nullptr && trainer.joined()) RETURN_IF_ERROR(guest->OnEnd(trainer));
    if (!trainer.Leave()) continue;
    if (trainer.job_over()) return OkStatus();
    ASSIGN_OR_RETURN(const bool ended, stand_in.EndIfLeading());
    if (ended) return OkStatus();
  }
}

// Ends the run with this failure in all tasks. The chief records the failure before the servers
// exit, so a server that is restarted immediately finds the record.
void EndRun(TaskContext& context, Trainer& trainer, const Status& failure, bool chief) {
  if (chief) RecordFailure(context, failure, trainer.global_step());
  const Status told = trainer.strategy().Fail(failure);
  if (!told.ok())
    kTrainLog.Warning("could not tell every server that the run has failed", {{"error", told}});
}

StatusOr<std::unique_ptr<rpc::Server>> Serve(TaskContext& context,
                                             collectives::Endpoint* endpoint) {
  if (endpoint == nullptr) return context.Serve({});
  return context.Serve({{collectives::Endpoint::kService, endpoint}}, endpoint);
}

}  // namespace

Status RunTraining(TaskContext& context, RunGuest* guest) {
  // The trainer is destroyed before the server, and the server before the endpoint, which handles
  // the server's streams.
  ASSIGN_OR_RETURN(const auto endpoint,
                   strategy::MakeEndpoint({.config = context.config().strategy,
                                           .tf_config = context.tf_config(),
                                           .identity = context.identity(),
                                           .credentials = context.credentials(),
                                           .device = [&context] { return context.device(); }}));
  ASSIGN_OR_RETURN(auto server, Serve(context, endpoint.get()));
  Trainer trainer(context, endpoint.get());
  RETURN_IF_ERROR(trainer.Prepare());
  const bool chief = cluster::RoleOf(context.tf_config()) == cluster::Role::kChief;
  std::optional<InformedGuest> informed;
  if (guest != nullptr) informed.emplace(*guest);
  RunGuest* const own = informed ? &*informed : nullptr;
  const Status result = chief ? RunChief(context, trainer, own) : RunWorker(context, trainer, own);
  const bool stopped = absl::IsCancelled(result) && context.stop().requested();
  if (informed && !result.ok()) informed->Tell(trainer, result, stopped);
  if (const std::string losses = context.board().Losses();
      result.ok() && !losses.empty() && (chief || trainer.strategy().Leads())) {
    cluster::WriteTerminationMessage(cluster::TerminationLog(),
                                     StrCat(cluster::kLossPrefix, losses));
  }
  if (state::IsRunFailure(result))
    EndRun(context, trainer, result, chief || trainer.strategy().Leads());
  return result;
}

}  // namespace tfjob::train
