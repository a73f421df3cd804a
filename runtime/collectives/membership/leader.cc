#include "runtime/collectives/membership/leader.h"

#include <algorithm>
#include <sstream>
#include <tuple>
#include <type_traits>

#include "runtime/base/check.h"
#include "runtime/state/run_failure.h"

namespace tfjob::collectives {
namespace {

// Returns whether the state that `member` has brought is newer than the state of `other`.
bool IsNewer(const Member& member, const Member& other) {
  if (member.step < 0 || other.step < 0) return member.step > other.step;
  return std::tie(member.state_generation, member.step) >
         std::tie(other.state_generation, other.step);
}

std::string Quoted(const std::optional<std::string>& line) {
  constexpr size_t kMost = 200;
  if (!line) return "no such line";
  return line->size() <= kMost ? StrCat("'", *line, "'")
                               : StrCat("'", line->substr(0, kMost), "…'");
}

std::optional<std::string> NextLine(std::istringstream& text) {
  std::string line;
  if (!std::getline(text, line)) return std::nullopt;
  return line;
}

}  // namespace

std::string FirstDifference(const std::string& left_name, const std::string& left,
                            const std::string& right_name, const std::string& right) {
  if (left == right) return "";
  std::istringstream left_lines(left), right_lines(right);
  for (;;) {
    const auto left_line = NextLine(left_lines), right_line = NextLine(right_lines);
    if (left_line == right_line && left_line) continue;
    return StrCat(left_name, " has ", Quoted(left_line), ", ", right_name, " has ",
                  Quoted(right_line));
  }
}

Leader::Leader(std::vector<Member> tasks, LeaderRules rules, int self)
    : rules_(rules), self_(static_cast<size_t>(self)) {
  ENFORCE(self_ < tasks.size(), "the leader is a task of its group");
  for (Member& task : tasks) {
    indices_[task.task] = seats_.size();
    seats_.push_back({.member = std::move(task)});
  }
  NoteMissing(Duration(0));
}

Leader::Seat* Leader::SeatOf(SessionId session) {
  if (session == 0) return nullptr;
  const auto found = std::ranges::find(seats_, session, &Seat::session);
  return found == seats_.end() ? nullptr : &*found;
}

const Leader::Seat* Leader::SeatOf(const std::string& task) const {
  const auto found = indices_.find(task);
  return found == indices_.end() ? nullptr : &seats_[found->second];
}

void Leader::Send(const Seat& seat, ToMember message) {
  if (seat.session != 0) output_.messages.emplace_back(seat.session, std::move(message));
}

void Leader::SendToAll(const ToMember& message) {
  for (const Seat& seat : seats_) Send(seat, message);
}

// ---- events

Status Leader::Admit(int task, int64_t incarnation) const {
  const Seat& seat = seats_[static_cast<size_t>(task)];
  if (seat.replaced.contains(incarnation)) {
    return PermissionDenied("refused: another process of ", Describe(seat.member),
                            " has taken the place of this one, which must exit");
  }
  if (!has_begun_ && seat.session != 0 && seat.member.incarnation != incarnation) {
    return AlreadyExists("refused for now: another process of ", Describe(seat.member),
                         " is connected");
  }
  return OkStatus();
}

Status Leader::Connect(Duration now, int task, int64_t incarnation, SessionId session) {
  RETURN_IF_ERROR(Admit(task, incarnation));
  Seat& seat = seats_[static_cast<size_t>(task)];
  const bool restarted = seat.member.incarnation != 0 && seat.member.incarnation != incarnation;
  if (restarted) {
    seat.rivals.insert(seat.member.incarnation);
    seat.left = seat.departed = false;
    seat.known = 0;
    seat.pause = seat.paused_until = Duration(0);
  }
  if (seat.session != 0) {
    output_.closed.push_back(seat.session);
    Lose(now, seat, restarted ? "it was restarted" : "it has connected again");
  }
  seat.member.incarnation = incarnation;
  seat.session = session;
  seat.seen = true;
  memory_.reset();
  if (has_begun_) NoteRivals(seat);
  if (end_) {
    Send(seat, *end_);
    return OkStatus();
  }
  Send(seat, awaited_);
  Proceed(now);
  return OkStatus();
}

void Leader::Disconnect(Duration now, SessionId session, const std::string& why) {
  if (Seat* seat = SeatOf(session)) {
    Lose(now, *seat, why);
    Proceed(now);
  }
}

void Leader::Lose(Duration now, Seat& seat, const std::string& why) {
  seat.session = 0;
  seat.stays = false;
  seat.lost = now;
  seat.join.reset();
  seat.busy.reset();
  memory_.reset();
  if (seat.rank >= 0 && !seat.left) {
    Withdraw(StrCat(Describe(seat.member), " was lost: ", why));
  }
}

void Leader::OnMessage(Duration now, SessionId session, const ToLeader& message) {
  Seat* const seat = SeatOf(session);
  if (seat == nullptr) return;
  if (const auto* leave = std::get_if<LeaveNotice>(&message)) OnLeave(*seat, *leave);
  if (const auto* depart = std::get_if<DepartNotice>(&message)) OnDepart(*seat, *depart);
  if (end_) return;
  if (const auto* join = std::get_if<JoinRequest>(&message)) {
    OnJoin(now, *seat, *join);
  } else if (const auto* ready = std::get_if<ReadyReport>(&message)) {
    OnReady(*seat, ready->generation);
  } else if (const auto* wait = std::get_if<WaitReport>(&message)) {
    OnWait(now, *seat, *wait);
  } else if (const auto* phase = std::get_if<PhaseReport>(&message)) {
    OnPhase(now, *seat, *phase);
  } else if (const auto* unreachable = std::get_if<UnreachableReport>(&message)) {
    OnUnreachable(*seat, *unreachable);
  } else if (const auto* failure = std::get_if<FailureReport>(&message)) {
    if (seat->rank >= 0 && failure->generation == number_) {
      Withdraw(StrCat(Describe(seat->member), " reports: ", failure->why), failure->departs);
    }
  } else if (const auto* run_failure = std::get_if<RunFailureReport>(&message)) {
    Finish(state::RunFailure(run_failure->words));
  }
  Proceed(now);
}

void Leader::NoteReplaced(Seat& seat, int64_t incarnation) {
  constexpr size_t kMost = 1024;
  if (seat.replaced.size() >= kMost) seat.replaced.erase(seat.replaced.begin());
  seat.replaced.insert(incarnation);
}

void Leader::NoteRivals(Seat& seat) {
  if (seat.member.incarnation == 0) return;  // not yet known which of the rivals takes part
  for (const int64_t rival : std::exchange(seat.rivals, {})) {
    if (rival != seat.member.incarnation) NoteReplaced(seat, rival);
  }
}

std::vector<KnownProcess> Leader::Replaced() const {
  std::vector<KnownProcess> replaced;
  for (const Seat& seat : seats_) {
    for (const int64_t incarnation : seat.replaced) {
      if (replaced.size() >= kMostKnown) return replaced;
      replaced.push_back({seat.member.task, incarnation, true});
    }
  }
  return replaced;
}

void Leader::Hear(Duration now, const KnownProcess& process) {
  const auto index = indices_.find(process.task);
  if (index == indices_.end()) return;
  Seat* const found = &seats_[index->second];
  // Ignore a report about this leader's own process: a member that knew of a newer process would
  // not have connected to this leader.
  if (index->second == self_ && process.incarnation == found->member.incarnation) return;
  if (!process.replaced) {
    found->rivals.insert(process.incarnation);
    if (has_begun_) NoteRivals(*found);
    return;
  }
  NoteReplaced(*found, process.incarnation);
  if (found->session == 0 || found->member.incarnation != process.incarnation) return;
  // Close the session: this leader admitted the process without knowing of its replacement.
  output_.closed.push_back(found->session);
  Lose(now, *found, "another process had replaced this one");
  found->member.incarnation = 0;
}

void Leader::OnJoin(Duration now, Seat& seat, const JoinRequest& join) {
  for (const KnownProcess& process : join.known) Hear(now, process);
  if (seat.session == 0) return;  // Hear has closed its session
  for (const ResignedProcess& process : join.resigned) {
    const auto index = indices_.find(process.task);
    if (index == indices_.end()) continue;
    NoteResigned(seats_[index->second], process.incarnation, process.generation);
  }
  if (seat.rank >= 0) {
    Withdraw(StrCat(Describe(seat.member), " joins again"));
  } else if (!rules_.shrinks) {
    Withdraw(StrCat(Describe(seat.member), " joins"));
  }
  // `heard_` affects only the number of the next generation; a generation that is forming or
  // running keeps its number.
  heard_ = std::max(heard_, join.last_generation);
  // The leader's task may read its data for a long time before it joins, and the others connect
  // only then.
  if (&seat == &seats_[self_] && !std::exchange(has_joined_, true)) {
    for (Seat& other : seats_) other.lost = std::max(other.lost, now);
    joined_ = now;
  }
  seat.left = seat.departed = false;
  seat.known = std::max(seat.known, join.last_generation);
  seat.join = join;
  memory_.reset();
  if (&seat == &seats_[self_]) agreement_ = join.agreement;
  if (join.step >= 0) NoteClaim(join.claim);
  if (rules_.elastic() && !join.address.empty()) seat.member.address = join.address;
  seat.member.step = join.step;
  seat.member.state_generation = join.state_generation;
}

void Leader::OnReady(Seat& seat, int64_t generation) {
  if (phase_ != Phase::kConnecting || seat.rank < 0 || generation != number_) return;
  seat.ready = true;
  seat.wait.reset();
}

void Leader::OnWait(Duration now, Seat& seat, const WaitReport& wait) {
  if (seat.rank < 0 || wait.generation != number_) return;
  seat.wait.reset();
  seat.reported = now;
  if (wait.on < 0 || wait.on >= static_cast<int>(ranks_.size())) return;
  seat.wait = RankWait{.operation = wait.operation,
                       .name = wait.name,
                       .on = wait.on,
                       .waited = Duration(wait.microseconds)};
}

void Leader::OnUnreachable(Seat& seat, const UnreachableReport& report) {
  if (phase_ != Phase::kConnecting || seat.rank < 0 || report.generation != number_) return;
  if (report.rank < 0 || report.rank >= static_cast<int>(ranks_.size())) return;
  seat.unreachable.insert(report.rank);
}

void Leader::OnLeave(Seat& seat, const LeaveNotice& notice) {
  seat.left = true;
  seat.was_member = false;
  seat.join.reset();
  NoteResigned(seat, seat.member.incarnation, std::max(seat.known, notice.last_generation));
  Send(seat, FarewellReceipt());
  // If the generation is running, the other members may still finish the operation that this task
  // has finished. Members that need this task in a later operation notice that its sockets are
  // closed.
  if (phase_ == Phase::kConnecting && seat.rank >= 0) {
    Withdraw(StrCat(Describe(seat.member), " has left"));
  }
}

void Leader::OnDepart(Seat& seat, const DepartNotice& notice) {
  seat.departed = true;
  seat.was_member = false;
  seat.join.reset();
  NoteResigned(seat, seat.member.incarnation, std::max(seat.known, notice.last_generation));
  Send(seat, FarewellReceipt{.departs = true});
  if (seat.rank >= 0) {
    Withdraw(StrCat(Describe(seat.member), " was asked to end"), /*departs=*/true);
  }
}

void Leader::NoteResigned(Seat& seat, int64_t incarnation, int64_t generation) {
  constexpr size_t kMost = 1024;
  memory_.reset();
  if (seat.resigned.size() >= kMost && !seat.resigned.contains(incarnation)) {
    seat.resigned.erase(seat.resigned.begin());
  }
  int64_t& latest = seat.resigned[incarnation];
  latest = std::max(latest, generation);
}

bool Leader::HasResigned(const Participant& process, int64_t generation) const {
  const Seat* const seat = SeatOf(process.task);
  if (seat == nullptr) return false;
  const auto found = seat->resigned.find(process.incarnation);
  return found != seat->resigned.end() && generation <= found->second;
}

void Leader::HoldBack(Duration now) {
  Seat& own = seats_[self_];
  if (own.rank >= 0) {
    Withdraw(StrCat(Describe(own.member), " was asked to end"), /*departs=*/true);
  }
  own.join.reset();
  memory_.reset();
  Proceed(now);
}

void Leader::Finish(const Status& failure) {
  if (end_) return;
  end_ = EndOrder{.failed = !failure.ok(), .words = std::string(Message(failure))};
  SendToAll(*end_);
}

bool Leader::EndIsKnown() const {
  return end_ && std::ranges::all_of(seats_, [this](const Seat& seat) {
           return &seat == &seats_[self_] || seat.left || seat.departed ||
                  (seat.session == 0 && !seat.was_member);
         });
}

bool Leader::TaskWaits(Duration now) const {
  return phase_ == Phase::kGoing && std::ranges::any_of(seats_, [&](const Seat& seat) {
           return TakesPart(now, seat, rules_.shrinks);
         });
}

// ---- generations

void Leader::Withdraw(const std::string& why, bool departs) {
  if (phase_ == Phase::kGathering) return;
  for (const size_t index : ranks_) {
    Seat& seat = seats_[index];
    Send(seat, WithdrawOrder{.generation = number_, .why = why, .departs = departs});
    seat.rank = -1;
    seat.ready = false;
    seat.wait.reset();
  }
  ranks_.clear();
  phase_ = Phase::kGathering;
}

void Leader::RefuseMisfits() {
  if (!agreement_) return;
  const Seat& leader = seats_[self_];
  for (Seat& seat : seats_) {
    if (!seat.join) continue;
    const std::string difference = FirstDifference(Describe(leader.member), *agreement_,
                                                   Describe(seat.member), seat.join->agreement);
    if (difference.empty()) continue;
    seat.join.reset();
    memory_.reset();
    Send(seat, RefusalOrder{StrCat("this task does not fit the group: ", difference,
                                   ": give all tasks the same program, training file and data")});
  }
}

// A task without the claim's folder could never learn that the run has ended. The check takes
// seconds, so it comes before the members interrupt their training for the task.
void Leader::LetFindClaim() {
  if (claim_ == 0) return;
  for (Seat& seat : seats_) {
    if (!seat.join || seat.join->step >= 0 || seat.join->claim == claim_) continue;
    seat.join.reset();
    memory_.reset();
    Send(seat, ClaimOrder{claim_});
  }
}

void Leader::Proceed(Duration now) {
  if (end_) return;
  RefuseMisfits();
  LetFindClaim();
  if (phase_ == Phase::kGathering) {
    hands_back_ = false;
    if (Missing(now).empty() && MoreTasks(now) == 0 && !AwaitsCall(now)) Form(now);
  }
  if (phase_ == Phase::kConnecting && Missing(now).empty()) {
    phase_ = Phase::kGoing;
    has_begun_ = true;
    for (Seat& seat : seats_) {
      seat.was_member = seat.stays = seat.rank >= 0;
      if (!seat.was_member) continue;
      seat.known = number_;
      seat.pause = seat.paused_until = Duration(0);
      NoteRivals(seat);
      Send(seat, GoOrder{number_});
    }
  }
  NoteMissing(now);
  NoteStuck(now);
}

void Leader::Form(Duration now) {
  const bool may_shrink = MayShrink();
  const std::vector<int64_t> members = Remembered().members;
  if (self_ != 0 && rules_.shrinks && TakesPart(now, seats_[0], may_shrink)) {
    hands_back_ = true;
    return;
  }
  phase_ = Phase::kConnecting;
  formed_ = now;
  continues_ = may_shrink;
  number_ = std::max({number_ + 1, heard_ + 1, may_shrink ? 1 : rules_.first_generation});
  FormOrder order{.generation = number_, .members = {}, .replaced = Replaced()};
  std::vector<int64_t> requests;
  std::vector<size_t> taking_part;
  for (size_t index = 0; index < seats_.size(); ++index) {
    if (!TakesPart(now, seats_[index], may_shrink)) continue;
    taking_part.insert(index == self_ ? taking_part.begin() : taking_part.end(), index);
  }
  for (const size_t index : taking_part) {
    Seat& seat = seats_[index];
    seat.rank = static_cast<int>(order.members.size());
    seat.ready = false;
    seat.unreachable.clear();
    requests.push_back(seat.join->request);
    seat.join.reset();
    ranks_.push_back(index);
    order.members.push_back(seat.member);
    seat.returns = may_shrink ? members[index] != seat.member.incarnation
                              : rules_.elastic() && members[index] == 0;
    if (IsNewer(seat.member, order.members[static_cast<size_t>(order.source)])) {
      order.source = seat.rank;
    }
  }
  memory_.reset();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    order.request = requests[rank];
    Send(seats_[ranks_[rank]], order);
  }
}

void Leader::Tick(Duration now) {
  if (end_) return;
  for (Seat& seat : seats_) {
    if (seat.wait && now - seat.reported >= rules_.report_lasts) seat.wait.reset();
    if (seat.busy && now - seat.busy->reported >= rules_.report_lasts) seat.busy.reset();
  }
  if (phase_ == Phase::kConnecting && now - formed_ >= rules_.connect_patience) {
    GiveUpConnecting(now);
  }
  Proceed(now);
}

}  // namespace tfjob::collectives
