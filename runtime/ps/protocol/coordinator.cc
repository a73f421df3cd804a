#include "runtime/ps/protocol/coordinator.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

namespace tfjob::ps::protocol {
namespace {

// A hold ends after this time without a renewal, so that a chief that dies during a copy does not
// block the other tasks forever.
constexpr Duration kHoldLease{60s};
// Once this many contributions to a step have been reported, reports of further contributions are
// ignored.
constexpr size_t kMostStaged = 1 << 16;

}  // namespace

bool Coordinator::active() const {
  return epoch_ != 0 && std::ranges::all_of(participants_, [&](const Server& server) {
           return server.epoch == epoch_;
         });
}

CoordinatorActions Coordinator::Fill(int64_t epoch, int64_t step, int replicas_to_aggregate,
                                     bool merges, size_t groups) {
  CoordinatorActions actions;
  if (epoch_ != 0) Break(actions);
  epoch_ = epoch;
  step_ = step;
  aggregate_ = static_cast<size_t>(replicas_to_aggregate);
  merges_ = merges;
  groups_ = groups;
  Proceed(actions);
  return actions;
}

CoordinatorActions Coordinator::Void() {
  CoordinatorActions actions;
  if (epoch_ != 0) Break(actions);
  return actions;
}

void Coordinator::Break(CoordinatorActions& actions) {
  for (size_t i = 0; i < participants_.size(); ++i) {
    actions.messages.emplace_back(static_cast<int>(i), Abort{epoch_});
  }
  EndHold(actions);
  epoch_ = 0;
  staged_.clear();
  complete_.clear();
  tree_.Clear();
  last_commit_.reset();
  totals_.reset();
  // Keep the members: their connections outlive the state, and they will contribute to the next
  // state.
  for (auto& [worker, member] : members_) {
    member.waiting.reset();
    member.awaited.reset();
    member.granted = 0;
  }
}

// ---- the start

void Coordinator::Gather(std::vector<Worker> workers, Duration until) {
  gathering_ = std::move(workers);
  gather_until_ = until;
}

std::vector<Worker> Coordinator::Missing() const {
  std::vector<Worker> missing;
  if (gathered_) return missing;
  for (const Worker& worker : gathering_) {
    if (!members_.contains(worker) && !departed_.contains(worker)) missing.push_back(worker);
  }
  return missing;
}

// ---- messages

CoordinatorActions Coordinator::OnMessage(int server, const ToCoordinator& message) {
  CoordinatorActions actions;
  if (const auto* hello = std::get_if<Hello>(&message)) {
    OnHello(server, *hello, actions);
  } else if (const auto* staged = std::get_if<StagedReport>(&message)) {
    OnStaged(server, *staged, actions);
  } else if (const auto* applied = std::get_if<AppliedReport>(&message)) {
    Server& known = participants_[static_cast<size_t>(server)];
    // Never lower the step, because a repeated report may be older than the last one.
    if (applied->epoch == known.epoch) known.step = std::max(known.step, applied->step);
  } else if (const auto* squares = std::get_if<SquaresReport>(&message)) {
    OnSquares(server, *squares, actions);
  }
  Proceed(actions);
  return actions;
}

void Coordinator::OnHello(int server, const Hello& hello, CoordinatorActions& actions) {
  Server& known = participants_[static_cast<size_t>(server)];
  const bool restarted = hello.incarnation > known.incarnation;
  if (!restarted) {
    // Ignore late hellos, which come from an earlier process or concern an epoch that the server
    // has left. A hello from a server without a state has epoch 0, so it is accepted only if the
    // process has restarted.
    if (hello.incarnation < known.incarnation || hello.epoch < known.epoch) return;
    if (hello.epoch == known.epoch) {
      known.step = std::max(known.step, hello.step);
      return;
    }
  }
  // If the server had the state of the current epoch, it has lost that state, so the state is void
  // on all servers.
  if (epoch_ != 0 && known.epoch == epoch_) Break(actions);
  known = {hello.incarnation, hello.epoch, hello.step, {}};
}

void Coordinator::OnStaged(int server, const StagedReport& report, CoordinatorActions& actions) {
  if (epoch_ == 0 || report.epoch != epoch_ || report.step != step_) return;
  // A contribution may be used even if its worker has left; `member` is then null.
  auto found = members_.find(report.name.worker);
  Member* member = found != members_.end() && found->second.incarnation == report.name.incarnation
                       ? &found->second
                       : nullptr;
  const bool older = IsOlder(report.name);
  if ((older || staged_.size() >= kMostStaged) && !staged_.contains(report.name)) {
    if (older) actions.messages.emplace_back(server, Forget{epoch_, step_, report.name});
    return;
  }
  auto [entry, added] = staged_.try_emplace(
      report.name, Contribution{.where = std::vector<bool>(participants_.size(), false)});
  if (server == 0) entry->second.drawn = report.drawn;  // only ps 0 keeps positions
  // A contribution may be used only after all servers have staged it, because all servers must
  // apply the same set.
  std::vector<bool>& where = entry->second.where;
  const bool was_complete = std::ranges::all_of(where, std::identity());
  where[static_cast<size_t>(server)] = true;
  if (was_complete) {
    // A worker that repeats a contribution that was answered with a token did not receive the
    // token. Resend it.
    if (member != nullptr && member->granted == report.name.sequence && !member->waiting) {
      actions.again.push_back(
          {report.name.worker, report.name.incarnation, report.name.sequence, step_});
    }
    return;
  }
  if (!std::ranges::all_of(where, std::identity())) return;
  OnComplete(report.name, actions);
  if (member != nullptr) {
    Return(report.name.worker, *member, actions);
    member->waiting = report.name.sequence;
    member->awaited.reset();
    member->order = ++order_;
  }
}

void Coordinator::OnComplete(const Name& name, CoordinatorActions& actions) {
  complete_.push_back(name);
  // The first `aggregate_` contributions will be committed unless the state becomes void.
  if (!merges_ || complete_.size() > aggregate_) return;
  for (const auto& [into, from] : tree_.Add(name)) {
    for (size_t i = 0; i < participants_.size(); ++i) {
      actions.messages.emplace_back(static_cast<int>(i), Merge{epoch_, step_, into, from});
    }
  }
}

void Coordinator::OnSquares(int server, const SquaresReport& report, CoordinatorActions& actions) {
  if (epoch_ == 0 || report.epoch != epoch_ || !last_commit_ || totals_) return;
  if (report.step != last_commit_->step || report.squares.size() != groups_) return;
  participants_[static_cast<size_t>(server)].squares = report.squares;
  if (!std::ranges::all_of(participants_, [](const Server& s) { return !s.squares.empty(); })) {
    return;
  }
  totals_ = Totals{.epoch = epoch_, .step = report.step, .squares = {}};
  totals_->squares.assign(groups_, 0);
  // Sum in server order, regardless of the order of the reports.
  for (const Server& measured : participants_) {
    for (size_t i = 0; i < groups_; ++i) totals_->squares[i] += measured.squares[i];
  }
  for (size_t i = 0; i < participants_.size(); ++i) {
    actions.messages.emplace_back(static_cast<int>(i), *totals_);
  }
}

bool Coordinator::IsOlder(const Name& name) const {
  const auto found = newest_.find(name.worker);
  return found != newest_.end() && name.incarnation < found->second;
}

int64_t Coordinator::DrawnBy(const Worker& worker, bool backups) const {
  int64_t drawn = 0;
  const size_t counted = backups ? complete_.size() : std::min(aggregate_, complete_.size());
  for (const Name& name : std::span(complete_).first(counted)) {
    if (name.worker == worker) drawn = std::max(drawn, staged_.at(name).drawn);
  }
  return drawn;
}

// ---- members

CoordinatorActions Coordinator::Join(const Worker& worker, int64_t incarnation) {
  CoordinatorActions actions;
  departed_.erase(worker);
  if (int64_t& newest = newest_[worker]; newest < incarnation) {
    newest = incarnation;
    DropOlder(worker, actions);
  }
  auto [found, added] = members_.try_emplace(worker, Member{.incarnation = incarnation});
  // A restarted worker replaces its predecessor, even if the loss of the predecessor has not been
  // noticed.
  if (found->second.incarnation < incarnation) {
    Return(worker, found->second, actions);
    found->second = {.incarnation = incarnation};
  } else if (found->second.incarnation == incarnation) {
    Return(worker, found->second, actions);
  }
  if (added) {
    // A worker that left and now rejoins may already have a contribution staged.
    for (const Name& name : complete_) {
      if (name.worker == worker && name.incarnation == incarnation) {
        found->second.waiting = name.sequence;
        found->second.order = ++order_;
      }
    }
  }
  Proceed(actions);
  return actions;
}

// Forgets the contributions of earlier processes of the worker. The new process computes their
// batches again, so their gradients must not be used, even if they arrive later.
void Coordinator::DropOlder(const Worker& worker, CoordinatorActions& actions) {
  std::erase_if(staged_, [&](const auto& staged) {
    const auto& [name, contribution] = staged;
    const std::vector<bool>& where = contribution.where;
    if (name.worker != worker || !IsOlder(name) || std::ranges::all_of(where, std::identity()))
      return false;
    // Make the servers free the bytes now; otherwise they would keep them until the step is
    // decided.
    for (size_t i = 0; i < where.size(); ++i) {
      if (!where[i]) continue;
      actions.messages.emplace_back(static_cast<int>(i), Forget{epoch_, step_, name});
    }
    return true;
  });
}

CoordinatorActions Coordinator::Leave(const Worker& worker, int64_t incarnation, bool for_good) {
  CoordinatorActions actions;
  auto found = members_.find(worker);
  if (found == members_.end() || found->second.incarnation != incarnation) return actions;
  members_.erase(found);
  if (for_good) departed_.insert(worker);
  if (holder_ == worker) EndHold(actions);
  Proceed(actions);
  return actions;
}

std::vector<Worker> Coordinator::Awaited() const {
  std::vector<Worker> awaited;
  const bool waits = std::ranges::any_of(
      members_, [](const auto& entry) { return entry.second.waiting.has_value(); });
  if (!active() || !waits) return awaited;
  for (const auto& [worker, member] : members_) {
    if (member.computes()) awaited.push_back(worker);
  }
  return awaited;
}

void Coordinator::Return(const Worker& worker, Member& member, CoordinatorActions& actions) {
  if (!std::exchange(member.lapsed, false)) return;
  member.awaited.reset();
  actions.returned.push_back(worker);
}

void Coordinator::ExpireTokens(Duration now, CoordinatorActions& actions) {
  lease_.Observe(now, step_);
  // While the tasks gather or the state is copied, the step does not wait for contributions.
  const bool paused = !active() || holder_ || !gathered_;
  if (paused) lease_.Discount();
  const std::optional<Duration> lease = lease_.Length();
  // A member is late only if other members are waiting for it.
  const bool waits = !paused && std::ranges::any_of(members_, [](const auto& entry) {
    return entry.second.waiting.has_value();
  });
  for (auto& [worker, member] : members_) {
    if (!lease || !waits || !member.computes()) {
      member.awaited.reset();
    } else if (!member.awaited) {
      member.awaited = now;
    } else if (now - *member.awaited >= *lease) {
      member.lapsed = true;
      lease_.Discount();
      actions.lapses.push_back({worker, now - *member.awaited});
    }
  }
}

// ---- the step

void Coordinator::Proceed(CoordinatorActions& actions) {
  if (!active()) return;
  gathered_ = gathered_ || Missing().empty();
  // No step is committed during a hold, so all servers reach the same step.
  if (holder_) {
    if (!hold_granted_ && AllApplied()) {
      hold_granted_ = true;
      actions.holds.push_back({*holder_, true});
    }
  } else if (gathered_ && complete_.size() >= aggregate_ && (groups_ == 0 || AllApplied())) {
    // Wait for the second round of a measured commit, because a new commit would interrupt this
    // round.
    CommitStep(actions);
  }
  if (gathered_) GrantTokens(actions);
}

bool Coordinator::AllApplied() const {
  return std::ranges::all_of(participants_,
                             [&](const Server& server) { return server.step >= step_; });
}

void Coordinator::CommitStep(CoordinatorActions& actions) {
  Commit commit{.epoch = epoch_,
                .step = step_,
                .set = complete_,
                .measured = groups_ > 0,
                .learning_rate = learning_rate_};
  // Use the earliest contributions and drop the later ones. Sort the set, because the bits of a sum
  // depend on the order of its terms, which must not depend on the network.
  commit.set.resize(aggregate_);
  std::ranges::sort(commit.set);
  for (size_t i = 0; i < participants_.size(); ++i) {
    actions.messages.emplace_back(static_cast<int>(i), commit);
  }
  last_commit_ = std::move(commit);
  totals_.reset();
  for (Server& server : participants_) server.squares.clear();
  ++step_;
  staged_.clear();
  complete_.clear();
  tree_.Clear();
  // The servers answer all waiting members with the new values, so these members are computing
  // again.
  for (auto& [worker, member] : members_) {
    member.waiting.reset();
    member.awaited.reset();
  }
}

void Coordinator::GrantTokens(CoordinatorActions& actions) {
  // Each missing contribution needs one computing member. If too few are computing, the members
  // that have waited longest get a token to compute another batch.
  const auto computing = static_cast<size_t>(
      std::ranges::count_if(members_, [](const auto& entry) { return entry.second.computes(); }));
  size_t wanted = aggregate_ - std::min(aggregate_, complete_.size());
  wanted -= std::min(wanted, computing);
  while (wanted-- > 0) {
    auto longest = members_.end();
    for (auto it = members_.begin(); it != members_.end(); ++it) {
      if (!it->second.waiting) continue;
      if (longest == members_.end() || it->second.order < longest->second.order) longest = it;
    }
    if (longest == members_.end()) return;
    Member& member = longest->second;
    member.granted = *member.waiting;
    member.waiting.reset();
    actions.again.push_back({longest->first, member.incarnation, member.granted, step_});
  }
}

// ---- holds and repetition

CoordinatorActions Coordinator::Hold(Duration now, const Worker& worker) {
  CoordinatorActions actions;
  if (!active() || (holder_ && holder_ != worker)) {
    actions.holds.push_back({worker, false});
    return actions;
  }
  holder_ = worker;
  hold_granted_ = false;
  hold_until_ = now + kHoldLease;
  Proceed(actions);
  return actions;
}

void Coordinator::Renew(Duration now, const Worker& worker) {
  if (Holds(worker)) hold_until_ = now + kHoldLease;
}

CoordinatorActions Coordinator::Release(const Worker& worker) {
  CoordinatorActions actions;
  if (holder_ == worker) EndHold(actions);
  Proceed(actions);
  return actions;
}

void Coordinator::EndHold(CoordinatorActions& actions) {
  if (holder_ && !hold_granted_) actions.holds.push_back({*holder_, false});
  holder_.reset();
  hold_granted_ = false;
}

CoordinatorActions Coordinator::Tick(Duration now) {
  CoordinatorActions actions;
  if (holder_ && now >= hold_until_) EndHold(actions);
  ExpireTokens(now, actions);
  if (active() && !gathered_ && now >= gather_until_) {
    actions.absent = Missing();
    gathered_ = true;
  }
  if (last_commit_ && now - repeated_ >= kRepeatAfter) {
    repeated_ = now;
    RepeatCommit(actions);
  }
  Proceed(actions);
  return actions;
}

void Coordinator::RepeatCommit(CoordinatorActions& actions) const {
  for (size_t i = 0; i < participants_.size(); ++i) {
    // Resend the message, because it may have been lost with a connection: the totals if there are
    // any (all servers then have the commit), otherwise the commit. A server that has already
    // applied the commit answers with its step; a server that is waiting for the totals answers
    // with its squares.
    if (participants_[i].epoch != epoch_ || participants_[i].step >= step_) continue;
    if (totals_) {
      actions.messages.emplace_back(static_cast<int>(i), *totals_);
    } else {
      actions.messages.emplace_back(static_cast<int>(i), *last_commit_);
    }
  }
}

}  // namespace tfjob::ps::protocol
