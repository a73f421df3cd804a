// Implements what a Trainer reports: its progress, and what it learns about other tasks.
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/log.h"
#include "runtime/train/trainer.h"

namespace tfjob::train {
namespace {

constexpr char kStuckTasks[] = "stuck workers";  // a problem on the board

}  // namespace

void Trainer::OnPeerEvent(const state::PeerEvent& event) {
  using Kind = state::PeerEvent::Kind;
  if (event.kind == Kind::kAbsent) return ShowAbsent(event);
  // While all tasks wait for a stuck task, no step ends, so ShowProgress is not called. Therefore,
  // show the problem here.
  if (event.kind == Kind::kStuck) context_.board().ShowProblem(kStuckTasks, event.message);
  if (event.kind == Kind::kReturned) {
    context_.board().ShowProblem(kStuckTasks, "");
    context_.board().Update([](progress::Progress& p) { p.waiting_for.clear(); });
  }
  if (event.kind == Kind::kDropped) context_.board().NoteLoss(event.peer, event.message);
  if (event.kind == Kind::kRejoined) context_.board().NoteReturn(event.peer);
  if (event.kind == Kind::kEnding) trainers_end_ = true;
  if (event.kind == Kind::kServerEnding) servers_end_ = true;
  if (event.kind == Kind::kLost || event.kind == Kind::kDropped || event.kind == Kind::kSuspected ||
      event.kind == Kind::kStuck || event.kind == Kind::kServerEnding) {
    kTrainLog.Warning(event.message, {{"peer", event.peer}});
  } else {
    kTrainLog.Info(event.message, {{"peer", event.peer}});
  }
  if (event.kind != Kind::kWaiting && event.kind != Kind::kStuck) return;
  context_.board().Update([&](progress::Progress& p) { p.waiting_for = event.message; });
}

void Trainer::ShowAbsent(const state::PeerEvent& event) {
  if (!event.message.empty()) kTrainLog.Warning(event.message);
  context_.board().ShowProblem("start", event.message);
}

void Trainer::Report(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) {
  if (outcome.rolled_back) {
    kTrainLog.Warning("rolled back to a checkpoint", {{"step", outcome.global_step}});
    log_window_.Reset(outcome.global_step);
    progress_window_.Reset(outcome.global_step);
    return;
  }
  log_window_.Add(batch, outcome);
  progress_window_.Add(batch, outcome);
  if (LogsAt(global_step_)) LogProgress();
  if (show_progress_) ShowProgress();
}

bool Trainer::LogsAt(int64_t step) const {
  const int64_t every = context_.config().log_step_count_steps;
  return every > 0 && step / every > log_window_.start_step() / every;
}

void Trainer::LogProgress() {
  std::string values;
  for (const auto& [name, value] : NamedValues(*definition_, log_window_.totals())) {
    values += StrCat(values.empty() ? "" : " ", name, "=", value);
  }
  kTrainLog.Info("step", {{"step", global_step_},
                          {"result", values},
                          {"steps_per_s", log_window_.StepsPerSecond(global_step_)},
                          {"staleness", log_window_.mean_staleness()},
                          {"dropped", log_window_.dropped()},
                          {"skipped", skipped_.Take()}});
  log_window_.Reset(global_step_);
}

void Trainer::ShowProgress() {
  const double rate = progress_window_.StepsPerSecond(global_step_);
  const std::vector<state::PeerState> peers = strategy_->Peers();
  context_.board().Update([&](progress::Progress& p) {
    p.step = global_step_;
    p.waiting_for.clear();
    p.epoch = global_step_ / steps_per_epoch_;
    p.steps_per_s = rate;
    if (progress_window_.totals().examples > 0) {
      const auto values = NamedValues(*definition_, progress_window_.totals());
      p.loss = values.front().second;
      p.metrics = {values.begin() + 1, values.end()};
    }
    if (rate > 0 && total_steps_ != INT64_MAX)
      p.seconds_left = static_cast<double>(total_steps_ - global_step_) / rate;
    p.peers.clear();
    for (const state::PeerState& peer : peers) {
      p.peers.push_back({peer.task, peer.address, std::string(state::Name(peer.health)),
                         static_cast<double>(peer.silence.count()) / 1e6});
    }
  });
  progress_window_.Reset(global_step_);
  ShowStuck(peers);
}

void Trainer::ShowStuck(const std::vector<state::PeerState>& peers) {
  std::string stuck;
  for (const state::PeerState& peer : peers) {
    if (peer.health != state::PeerHealth::kStuck) continue;
    stuck += StrCat(stuck.empty() ? "" : ", ", peer.task, " (", peer.address, ")");
  }
  if (!stuck.empty()) stuck += StrCat(": ", strategy_->AboutStuckTasks());
  context_.board().ShowProblem(kStuckTasks, stuck);
}

}  // namespace tfjob::train
