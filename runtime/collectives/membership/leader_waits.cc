// Decides which tasks a Leader waits for, and which tasks may continue without them.
#include <algorithm>

#include "runtime/collectives/membership/culprit.h"
#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/membership/quorum.h"

namespace tfjob::collectives {
namespace {

// Joins strings: "a", "a and b", "a, b and c". If there are very many strings, leaves some out.
std::string Enumerate(std::vector<std::string> texts) {
  constexpr size_t kMost = 16;
  if (texts.size() > kMost) {
    const size_t others = texts.size() - (kMost - 1);
    texts.resize(kMost - 1);
    texts.push_back(StrCat(others, " others"));
  }
  std::string all;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) all += i + 1 == texts.size() ? " and " : ", ";
    all += texts[i];
  }
  return all;
}

}  // namespace

// Every task that has taken over the state of a generation has a state with this generation's
// number.
bool Leader::HasStateOf(const PastGeneration& generation) const {
  return std::ranges::any_of(seats_, [&](const Seat& seat) {
    return seat.join && seat.member.step >= 0 &&
           seat.member.state_generation >= generation.generation;
  });
}

const Leader::Memory& Leader::Remembered() const {
  if (memory_) return *memory_;
  memory_ = Memory{.may_shrink = false, .members = std::vector<int64_t>(seats_.size())};
  std::vector<Vote> votes;
  for (const Seat& seat : seats_) {
    if (!seat.join) continue;
    votes.push_back(
        {.process = {seat.member.task, seat.member.incarnation}, .past = seat.join->past});
  }
  const std::vector<const PastGeneration*> all = GenerationsToContinue(votes);
  for (const PastGeneration* generation : all) {
    for (const Participant& member : generation->members) {
      if (HasResigned(member, generation->generation)) continue;
      const Seat* const seat = SeatOf(member.task);
      if (seat != nullptr)
        memory_->members[static_cast<size_t>(seat - seats_.data())] = member.incarnation;
    }
  }
  memory_->may_shrink = !all.empty() && HasStateOf(*all.front()) &&
                        HaveMajority(votes, [this](const Participant& process, int64_t generation) {
                          return HasResigned(process, generation);
                        });
  return *memory_;
}

bool Leader::HasMajority(const std::vector<PastGeneration>& past,
                         const std::function<bool(SessionId)>& is_heard) const {
  const auto counts = [&](const Seat& seat) {
    return seat.stays && (!is_heard || &seat == &seats_[self_] || is_heard(seat.session));
  };
  return std::ranges::all_of(past, [&](const PastGeneration& generation) {
    return IsMajority(
        generation,
        [&](const Participant& process) {
          const Seat* const seat = SeatOf(process.task);
          return seat != nullptr && counts(*seat) &&
                 seat->member.incarnation == process.incarnation &&
                 !HasResigned(process, generation.generation);
        },
        [&](const Participant& process) { return HasResigned(process, generation.generation); });
  });
}

bool Leader::IsMember(const Seat& seat) const {
  const int64_t process = Remembered().members[static_cast<size_t>(&seat - seats_.data())];
  return process != 0 && (!seat.seen || seat.member.incarnation == process);
}

bool Leader::IsAwaited(Duration now, const Seat& seat, bool may_shrink) const {
  if (seat.join) return false;
  if (&seat == &seats_[self_]) return true;
  if (seat.left) return false;
  if (!may_shrink) return !rules_.elastic() || IsAwaitedAtStart(now, seat);
  // Wait only for the process that was a member. If a task has lost that process, its replacement
  // is not awaited; it takes part once it has joined.
  if (!IsMember(seat)) return false;
  const Duration patience = seat.seen ? rules_.lost_patience : rules_.gather_patience;
  return seat.session != 0 || now - seat.lost < patience;
}

// Called if the processes that remember earlier generations are not a majority, or if no process
// remembers any. Waits without limit for members of earlier generations, because they may have
// continued elsewhere.
bool Leader::IsAwaitedAtStart(Duration now, const Seat& seat) const {
  const auto index = static_cast<size_t>(&seat - seats_.data());
  if (Remembered().members[index] != 0) return true;
  if (seat.departed) return false;
  if (seat.session != 0) return true;
  return IsListed(seat) && now - seat.lost < rules_.start_patience;
}

bool Leader::AwaitsCall(Duration now) const {
  if (phase_ != Phase::kGathering || !rules_.elastic()) return false;
  if (now - joined_ >= rules_.call_patience || MayShrink()) return false;
  if (std::ranges::all_of(seats_, [](const Seat& seat) { return seat.join.has_value(); })) {
    return false;
  }
  const auto remembered = [](int64_t process) { return process != 0; };
  if (std::ranges::any_of(Remembered().members, remembered)) return true;
  return std::ranges::any_of(seats_,
                             [](const Seat& seat) { return seat.join && seat.join->begins_again; });
}

int Leader::MoreTasks(Duration now) const {
  if (phase_ != Phase::kGathering || !rules_.elastic()) return 0;
  const bool may_shrink = MayShrink();
  const auto joined = std::ranges::count_if(
      seats_, [&](const Seat& seat) { return TakesPart(now, seat, may_shrink); });
  return std::max(rules_.least_tasks - static_cast<int>(joined), 0);
}

std::vector<const Leader::Seat*> Leader::Missing(Duration now) const {
  std::vector<const Seat*> missing;
  const bool may_shrink = MayShrink();
  for (const Seat& seat : seats_) {
    const bool awaited = phase_ == Phase::kGathering    ? IsAwaited(now, seat, may_shrink)
                         : phase_ == Phase::kConnecting ? seat.rank >= 0 && !seat.ready
                                                        : false;
    if (awaited) missing.push_back(&seat);
  }
  return missing;
}

// The caller checks that phases are still reported (Tick).
void Leader::OnPhase(Duration now, Seat& seat, const PhaseReport& report) {
  seat.busy.reset();
  if (report.phase == state::WorkPhase::kNone) return;
  constexpr Duration kMost{24h};
  seat.busy = Seat::Busy{.phase = report.phase,
                         .began = now - std::min(Duration(report.microseconds), kMost),
                         .until = now + std::min(Duration(report.left), kMost),
                         .reported = now};
}

std::string Leader::DescribeWork(Duration now, const Seat& seat) {
  if (!seat.busy) return Describe(seat.member);
  // Whole seconds suffice.
  const auto lasted = std::chrono::duration_cast<std::chrono::seconds>(now - seat.busy->began);
  return StrCat(Describe(seat.member), ", which has been ", state::Doing(seat.busy->phase), " for ",
                FormatDuration(lasted),
                now < seat.busy->until ? "," : ", longer than it announced,");
}

std::vector<const Leader::Seat*> Leader::BusyMembers() const {
  std::vector<const Seat*> busy;
  const auto waits = [](const Seat& seat) { return seat.join.has_value(); };
  if (phase_ != Phase::kGoing || std::ranges::none_of(seats_, waits)) return busy;
  for (const size_t index : ranks_) {
    if (seats_[index].busy && !seats_[index].join) busy.push_back(&seats_[index]);
  }
  return busy;
}

void Leader::NoteMissing(Duration now) {
  std::vector<std::string> names, descriptions;
  std::string cause;
  std::vector<const Seat*> missing = Missing(now);
  if (missing.empty()) missing = BusyMembers();
  for (const Seat* seat : missing) {
    names.push_back(seat->member.task);
    descriptions.push_back(DescribeWork(now, *seat));
    cause += StrCat(Describe(seat->member), state::Name(PhaseOf(*seat)), "\n");
  }
  AwaitedNotice notice;
  constexpr size_t kMostPeers = 16;
  names.resize(std::min(names.size(), kMostPeers));
  for (const std::string& name : names) notice.peers += (notice.peers.empty() ? "" : ", ") + name;
  if (missing.size() == 1) notice.address = missing[0]->member.address;
  notice.text = Enumerate(descriptions);
  const int more = MoreTasks(now);
  if (missing.empty() && more > 0) {
    notice.text = StrCat(more, more == 1 ? " more task" : " more tasks",
                         " (strategy.min_replicas is ", rules_.least_tasks, ")");
    notice.peers = notice.text;
  } else if (missing.empty() && AwaitsCall(now)) {
    notice.peers = notice.text = "tasks that may have continued without this one";
  }
  if (missing.empty()) cause = notice.text;
  if (notice == awaited_) return;
  if (cause == awaited_cause_ && now - awaited_noted_ < rules_.renew_notice) return;
  awaited_ = std::move(notice);
  awaited_cause_ = std::move(cause);
  awaited_noted_ = now;
  SendToAll(awaited_);
}

void Leader::NoteStuck(Duration now) {
  std::vector<std::optional<RankWait>> waits;
  if (phase_ == Phase::kGoing) {
    for (const size_t index : ranks_) waits.push_back(seats_[index].wait);
  }
  StuckNotice notice;
  std::string cause;
  if (const std::optional<Culprit> culprit = FindCulprit(waits)) {
    const Seat& seat = seats_[ranks_[static_cast<size_t>(culprit->rank)]];
    std::vector<std::string> waiters;
    for (const int rank : culprit->waiters) {
      waiters.push_back(seats_[ranks_[static_cast<size_t>(rank)]].member.task);
    }
    notice.peer = seat.member.task;
    notice.address = seat.member.address;
    notice.busy = seat.busy && now < seat.busy->until;
    const std::string who =
        StrCat(Enumerate(waiters), waiters.size() == 1 ? " waits for " : " wait for ");
    const std::string where = StrCat(" in operation ", culprit->operation, " (", culprit->name,
                                     ") of generation ", number_);
    notice.text = StrCat(who, DescribeWork(now, seat), where);
    cause =
        StrCat(who, notice.peer, where, " ", state::Name(PhaseOf(seat)), notice.busy ? "+" : "-");
  }
  if (notice == stuck_) return;
  if (cause == stuck_cause_ && now - stuck_noted_ < rules_.renew_notice) return;
  stuck_ = std::move(notice);
  stuck_cause_ = std::move(cause);
  stuck_noted_ = now;
  SendToAll(stuck_);
}

}  // namespace tfjob::collectives
