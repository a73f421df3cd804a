#include "runtime/ps/protocol/participant.h"

#include <algorithm>

namespace tfjob::ps::protocol {
namespace {

// How many steps a contribution may be ahead of the server. A server may be one step behind ps 0,
// which already requests contributions to the next step. It cannot be further behind, because a
// step is complete only once all servers have applied the previous one.
constexpr int64_t kMostAhead = 1;

}  // namespace

ParticipantActions Participant::Fill(Duration now, int64_t epoch, int64_t step, bool backups,
                                     bool measured) {
  ParticipantActions actions = Void();
  actions.voided = false;
  backups_ = backups;
  measured_ = measured;
  epoch_ = epoch;
  step_ = step;
  // This ledger covers only one epoch. The ledgers in the Store record the contributions that the
  // new state already contains.
  applied_ = {};
  Repeat(now, actions);
  return actions;
}

ParticipantActions Participant::Void() {
  ParticipantActions actions;
  actions.voided = epoch_ != 0;
  for (const auto& [name, contribution] : staged_) {
    actions.forget.push_back(name);
    actions.refused.push_back(name);
  }
  staged_.clear();
  merged_.clear();
  applying_.reset();
  squares_.clear();
  epoch_ = 0;
  return actions;
}

bool Participant::Wants(int64_t epoch, int64_t step, const Name& name) const {
  return Current(epoch) && step >= step_ && step <= step_ + kMostAhead && !staged_.contains(name) &&
         !applied_.Contains(name);
}

ParticipantActions Participant::Staged(int64_t epoch, int64_t step, const Name& name,
                                       int64_t drawn) {
  ParticipantActions actions;
  if (!Current(epoch) || step > step_ + kMostAhead) {
    // Do not free bytes that are already staged, even if their name arrives again for another step.
    if (!staged_.contains(name)) actions.forget.push_back(name);
    actions.refused.push_back(name);
  } else if (applied_.Contains(name)) {
    // The worker repeats the contribution because the answer was lost.
    actions.answers.push_back({.name = name, .step = step_, .dropped = false});
  } else if (staged_.contains(name)) {
    // The worker repeats the contribution before its step is decided. Also repeat the report,
    // because it may have been lost.
    actions.messages.push_back(StagedReport{epoch, step, name, staged_[name].drawn});
  } else if (step < step_) {
    actions.forget.push_back(name);
    if (backups_ && drawn > 0) actions.drawn.push_back({name.worker, drawn});
    actions.answers.push_back({.name = name, .step = step_, .dropped = true});
  } else {
    staged_[name] = {step, drawn};
    // If the step is already being committed, do not report this late contribution. Applied() will
    // answer it with the values that the commit produces.
    if (!applying_ || step > applying_->step) {
      actions.messages.push_back(StagedReport{epoch, step, name, drawn});
    }
  }
  return actions;
}

ParticipantActions Participant::OnMessage(const ToParticipant& message) {
  ParticipantActions actions;
  if (const auto* commit = std::get_if<Commit>(&message)) {
    OnCommit(*commit, actions);
  } else if (const auto* merge = std::get_if<Merge>(&message)) {
    OnMerge(*merge, actions);
  } else if (const auto* totals = std::get_if<Totals>(&message)) {
    OnTotals(*totals, actions);
  } else if (const auto* forget = std::get_if<Forget>(&message)) {
    OnForget(*forget, actions);
  } else if (std::get<Abort>(message).epoch >= epoch_ && epoch_ != 0) {
    actions = Void();
  }
  return actions;
}

void Participant::OnMerge(const Merge& merge, ParticipantActions& actions) {
  // During a commit, the message is either late or belongs to the next step, whose commit will sum
  // the same contributions.
  if (!Current(merge.epoch) || merge.step != step_ || applying_) return;
  const auto whole = [&](const Name& name) {
    return staged_.contains(name) && !merged_.contains(name);
  };
  if (merge.into == merge.from || !whole(merge.into) || !whole(merge.from)) return;
  merged_.insert(merge.from);
  actions.merge = merge;
}

void Participant::OnForget(const Forget& forget, ParticipantActions& actions) {
  const auto found = staged_.find(forget.name);
  if (!Current(forget.epoch) || found == staged_.end() || found->second.step != forget.step) return;
  // If the contribution is needed after all, a task has violated the protocol. The bytes are in
  // use, so keep them until the step is decided.
  const bool merged = merged_.contains(forget.name);
  const bool used =
      applying_ && std::ranges::find(applying_->set, forget.name) != applying_->set.end();
  if (merged || used) return;
  staged_.erase(found);
  actions.forget.push_back(forget.name);
  actions.refused.push_back(forget.name);
}

void Participant::OnCommit(const Commit& commit, ParticipantActions& actions) {
  if (!Current(commit.epoch)) return;
  if (applying_) {
    // Only one commit is applied at a time. The coordinator repeats a commit that is ignored here,
    // and a commit whose squares it has not received.
    if (applying_->step == commit.step) ReportSquares(actions);
    return;
  }
  if (commit.step < step_) {
    actions.messages.push_back(AppliedReport{epoch_, step_});
    return;
  }
  const bool kept =
      std::ranges::all_of(commit.set, [&](const Name& name) { return staged_.contains(name); });
  // A task has violated the protocol if the commit is for a later step, contains a contribution
  // that is not staged here, or is measured although the state's commits are not (or vice versa). A
  // server that cannot apply the commit no longer has the common state.
  if (commit.step > step_ || !kept || commit.measured != measured_) {
    actions = Void();
    return;
  }
  applying_ = commit;
  (commit.measured ? actions.measure : actions.apply) = commit;
}

ParticipantActions Participant::Measured(int64_t epoch, int64_t step, std::vector<double> squares) {
  ParticipantActions actions;
  // If this is no longer the commit being measured, the state was voided in the meantime.
  if (!applying_ || applying_->epoch != epoch || applying_->step != step) return actions;
  squares_ = std::move(squares);
  ReportSquares(actions);
  return actions;
}

void Participant::ReportSquares(ParticipantActions& actions) const {
  if (squares_.empty()) return;
  actions.messages.push_back(SquaresReport{applying_->epoch, applying_->step, squares_});
}

void Participant::OnTotals(const Totals& totals, ParticipantActions& actions) {
  if (!Current(totals.epoch)) return;
  if (totals.step < step_) {
    actions.messages.push_back(AppliedReport{epoch_, step_});
    return;
  }
  // squares_ is empty if the commit has not been measured yet, or is already being applied.
  if (!applying_ || totals.step != applying_->step || squares_.empty()) return;
  if (totals.squares.size() != squares_.size()) return;
  squares_.clear();
  actions.apply = applying_;
  actions.squares = totals.squares;
}

ParticipantActions Participant::Applied(int64_t epoch, int64_t step) {
  ParticipantActions actions;
  // If this is no longer the commit being applied, the state was voided in the meantime.
  if (!applying_ || applying_->epoch != epoch || applying_->step != step) return actions;
  const Commit commit = *std::move(applying_);
  applying_.reset();
  squares_.clear();
  step_ = commit.step + 1;
  merged_.clear();
  for (const Name& name : commit.set) applied_.Record(name);
  for (auto it = staged_.begin(); it != staged_.end();) {
    const auto& [name, contribution] = *it;
    if (contribution.step > commit.step) {
      ++it;
      continue;
    }
    const bool used = std::ranges::find(commit.set, name) != commit.set.end();
    if ((used || backups_) && contribution.drawn > 0) {
      actions.drawn.push_back({name.worker, contribution.drawn});
    }
    actions.answers.push_back({.name = name, .step = step_, .dropped = !used});
    actions.forget.push_back(name);
    it = staged_.erase(it);
  }
  actions.messages.push_back(AppliedReport{epoch_, step_});
  return actions;
}

ParticipantActions Participant::Connected(Duration now) {
  ParticipantActions actions;
  Repeat(now, actions);
  return actions;
}

ParticipantActions Participant::Tick(Duration now) {
  ParticipantActions actions;
  if (now - repeated_ >= kRepeatAfter) Repeat(now, actions);
  return actions;
}

void Participant::Repeat(Duration now, ParticipantActions& actions) {
  repeated_ = now;
  actions.messages.push_back(Hello{incarnation_, epoch_, step_});
  // A coordinator that lost its connection to this server may have missed any of these reports.
  for (const auto& [name, contribution] : staged_) {
    actions.messages.push_back(StagedReport{epoch_, contribution.step, name, contribution.drawn});
  }
  ReportSquares(actions);
}

}  // namespace tfjob::ps::protocol
