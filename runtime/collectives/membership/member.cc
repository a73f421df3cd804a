#include "runtime/collectives/membership/member.h"

#include <algorithm>

#include "runtime/state/run_failure.h"

namespace tfjob::collectives {

GroupMember::GroupMember(Member self, Member leader, bool shrinks)
    : self_(std::move(self)),
      shrinks_(shrinks),
      leader_(std::move(leader)),
      why_disconnected_(Unavailable("not connected yet")) {}

// ---- requests of the task

void GroupMember::Join(const Joining& joining) {
  if (phase_ == Phase::kEnded) return;
  joining_ = joining;
  has_joined_ = true;
  farewell_ = Farewell::kNone;
  LeaveGeneration(Aborted("the task joins again"));
  phase_ = Phase::kJoining;
  asked_ = false;
  AskToJoin();
}

void GroupMember::AskToJoin() {
  if (!connected_ || asked_ || phase_ != Phase::kJoining) return;
  asked_ = true;
  claim_to_find_ = 0;
  messages_.push_back(JoinRequest{
      .request = ++requests_,
      .step = joining_.step,
      .state_generation = joining_.state_generation,
      .agreement = joining_.agreement,
      .address = self_.address,
      .begins_again = joining_.begins_again,
      .claim = joining_.step >= 0 ? joining_.claim : found_claim_,
      .last_generation = last_generation_,
      .known = std::exchange(told_known_, true) ? std::vector<KnownProcess>() : KnownProcesses(),
      .past = shrinks_ ? history_.past() : std::vector<PastGeneration>(),
      .resigned = resigned_});
}

void GroupMember::Leave() {
  Say(Farewell::kLeaves, Cancelled(self_.task, " makes no further steps"));
}

void GroupMember::NoteResigned(const std::vector<ResignedProcess>& processes) {
  for (const ResignedProcess& process : processes) {
    if (resigned_.size() >= kMostMembers) resigned_.erase(resigned_.begin());
    resigned_.push_back(process);
  }
}

void GroupMember::Depart() {
  Say(Farewell::kDeparts, Cancelled(self_.task, " was asked to end"));
}

void GroupMember::FoundClaim(int64_t claim) {
  found_claim_ = claim;
  if (ClaimToFind() != claim) return;
  asked_ = false;
  AskToJoin();
}

void GroupMember::HoldBack() {
  if (phase_ == Phase::kEnded) return;
  LeaveGeneration(Cancelled(self_.task, " was asked to end"));
  phase_ = Phase::kIdle;
}

void GroupMember::FailRun(const Status& failure) {
  failure_ = failure;
  Say(Farewell::kFails, failure);
}

void GroupMember::Say(Farewell farewell, const Status& why) {
  if (phase_ == Phase::kEnded) return;
  LeaveGeneration(why);
  history_.Resign();
  phase_ = Phase::kIdle;
  if (farewell_ == farewell && farewell_heard_) return;
  farewell_ = farewell;
  farewell_heard_ = false;
  if (connected_) AnnounceFarewell();
}

void GroupMember::AnnounceFarewell() {
  if (farewell_ == Farewell::kLeaves) messages_.push_back(LeaveNotice{last_generation_});
  if (farewell_ == Farewell::kDeparts) {
    messages_.push_back(DepartNotice{last_generation_});
  }
  if (farewell_ == Farewell::kFails) {
    messages_.push_back(RunFailureReport{std::string(Message(failure_))});
  }
}

// ---- events

void GroupMember::Connected(const std::optional<Member>& leader) {
  if (leader) leader_ = *leader;
  connected_ = true;
  asked_ = told_known_ = false;
  claim_to_find_ = 0;
  messages_.clear();
  AnnounceFarewell();
  AskToJoin();
}

void GroupMember::Disconnected(const Status& why) {
  const bool lost = std::exchange(connected_, false);
  why_disconnected_ = why;
  asked_ = false;
  claim_to_find_ = 0;
  messages_.clear();
  awaited_ = {};
  if (!lost) return;
  // The next leader may form a generation without this task's knowledge, so the task must leave its
  // current generation.
  LeaveGeneration(
      Unavailable(Describe(leader_), ", which leads the group, was lost: ", Message(why)));
}

void GroupMember::Refused(const Status& why) {
  Disconnected(why);
  End(why);
}

void GroupMember::End(const Status& why) {
  if (phase_ == Phase::kEnded) return;
  LeaveGeneration(why);
  phase_ = Phase::kEnded;
  end_ = why;
}

void GroupMember::LeaveGeneration(const Status& why) {
  if (!InGeneration()) return;
  left_ = Left{.generation = formation_.generation, .why = why};
  // If the generation has not begun, the caller is still waiting in Join, so the task joins the
  // next generation.
  phase_ = phase_ == Phase::kGoing ? Phase::kIdle : Phase::kJoining;
  stuck_ = {};
  rank_ = -1;
  sockets_.clear();
}

void GroupMember::OnMessage(const ToMember& message) {
  if (!connected_) return;
  if (const auto* end = std::get_if<EndOrder>(&message)) {
    End(end->failed ? state::RunFailure(end->words) : Cancelled("the job has ended"));
    messages_.push_back(LeaveNotice{last_generation_});
  } else if (const auto* receipt = std::get_if<FarewellReceipt>(&message)) {
    farewell_heard_ = farewell_ == (receipt->departs ? Farewell::kDeparts : Farewell::kLeaves);
  } else if (const auto* refusal = std::get_if<RefusalOrder>(&message)) {
    End(FailedPrecondition(refusal->why));
  } else if (const auto* claim = std::get_if<ClaimOrder>(&message)) {
    if (phase_ == Phase::kJoining && asked_) claim_to_find_ = claim->claim;
  } else if (const auto* form = std::get_if<FormOrder>(&message)) {
    OnForm(*form);
  } else if (const auto* go = std::get_if<GoOrder>(&message)) {
    if (phase_ != Phase::kReady || !IsCurrent(go->generation)) return;
    phase_ = Phase::kGoing;
    history_.Begin(formation_);
    NoteProcesses(formation_);
  } else if (const auto* withdraw = std::get_if<WithdrawOrder>(&message)) {
    if (!IsCurrent(withdraw->generation)) return;
    const StatusCode code = withdraw->departs ? StatusCode::kAborted : StatusCode::kUnavailable;
    LeaveGeneration(
        Status(code, StrCat("generation ", withdraw->generation, " has ended: ", withdraw->why)));
    AskToJoin();
  } else if (const auto* awaited = std::get_if<AwaitedNotice>(&message)) {
    awaited_ = *awaited;
  } else if (const auto* stuck = std::get_if<StuckNotice>(&message)) {
    if (phase_ == Phase::kGoing) stuck_ = *stuck;
  }
}

void GroupMember::OnForm(const FormOrder& order) {
  // An order may answer a request that this task has withdrawn. The generation's number must be
  // new, because a leader continues from the highest number that its members know.
  if (phase_ != Phase::kJoining || !asked_ || order.request != requests_) return;
  if (order.generation <= last_generation_) return;
  const auto own = std::ranges::find_if(order.members, [&](const Member& member) {
    return member.task == self_.task && member.incarnation == self_.incarnation;
  });
  if (own == order.members.end()) return;
  formation_ = order;
  last_generation_ = order.generation;
  rank_ = static_cast<int>(own - order.members.begin());
  asked_ = false;
  sockets_.assign(order.members.size(), false);
  sockets_[static_cast<size_t>(rank_)] = true;
  socket_failure_ = OkStatus();
  unreachable_.clear();
  phase_ = Phase::kConnecting;
  BeReadyIfConnected();
}

void GroupMember::NoteProcesses(const FormOrder& order) {
  for (const KnownProcess& process : order.replaced) NoteReplaced(process);
  for (const Member& member : order.members) {
    const auto [known, added] = incarnations_.try_emplace(member.task, member.incarnation);
    if (added || known->second == member.incarnation) continue;
    NoteReplaced({member.task, std::exchange(known->second, member.incarnation), true});
  }
}

void GroupMember::NoteReplaced(const KnownProcess& process) {
  if (WasReplaced(process.task, process.incarnation)) return;
  if (replaced_.size() >= kMostKnown - kMostMembers) replaced_.erase(replaced_.begin());
  replaced_.push_back(process);
}

std::vector<KnownProcess> GroupMember::KnownProcesses() const {
  std::vector<KnownProcess> known = replaced_;
  for (const auto& [task, incarnation] : incarnations_) known.push_back({task, incarnation, false});
  return known;
}

void GroupMember::SocketConnected(int64_t generation, int rank) {
  if (phase_ != Phase::kConnecting || !IsCurrent(generation)) return;
  sockets_[static_cast<size_t>(rank)] = true;
  BeReadyIfConnected();
}

void GroupMember::SocketFailed(int64_t generation, int rank, const Status& why) {
  if (phase_ != Phase::kConnecting || !IsCurrent(generation)) return;
  socket_failure_ = Annotate(why, formation_.members[static_cast<size_t>(rank)].task);
  if (connected_ && unreachable_.insert(rank).second) {
    messages_.push_back(UnreachableReport{.generation = generation, .rank = rank});
  }
}

void GroupMember::BeReadyIfConnected() {
  if (!MissingSockets().empty()) return;
  phase_ = Phase::kReady;
  messages_.push_back(ReadyReport{formation_.generation});
}

void GroupMember::ReportFailure(int64_t generation, const Status& why, bool departs) {
  if (!IsCurrent(generation) || !connected_) return;
  messages_.push_back(FailureReport{
      .generation = generation, .why = std::string(Message(why)), .departs = departs});
}

void GroupMember::Failed(int64_t generation, const Status& why) {
  if (!IsCurrent(generation)) return;
  ReportFailure(generation, why);
  LeaveGeneration(why);
  AskToJoin();
}

void GroupMember::Report(const WaitReport& report) {
  if (phase_ == Phase::kGoing && connected_ && IsCurrent(report.generation)) {
    messages_.push_back(report);
  }
}

void GroupMember::Report(const PhaseReport& report) {
  if (connected_) messages_.push_back(report);
}

void GroupMember::Shared(int64_t generation) {
  if (phase_ != Phase::kGoing || !IsCurrent(generation)) return;
  history_.Share(generation);
  std::erase_if(resigned_, [generation](const ResignedProcess& process) {
    return process.generation < generation;
  });
}

// ---- state

bool GroupMember::LedLastShared() const {
  if (past().empty() || !past().front().shared || past().front().resigned) return false;
  return past().front().members.front() == Participant{self_.task, self_.incarnation};
}

std::vector<int> GroupMember::MissingSockets() const {
  std::vector<int> missing;
  for (size_t rank = 0; rank < sockets_.size(); ++rank) {
    if (!sockets_[rank]) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

AwaitedNotice GroupMember::Awaited() const {
  if (phase_ == Phase::kIdle || phase_ == Phase::kGoing || phase_ == Phase::kEnded) return {};
  if (!connected_) {
    return {.peers = leader_.task,
            .address = leader_.address,
            .text = StrCat("waits for ", Describe(leader_),
                           ", which leads the group: ", Message(why_disconnected_))};
  }
  if (phase_ == Phase::kConnecting) {
    const std::vector<int> missing = MissingSockets();
    AwaitedNotice notice;
    for (const int rank : missing) {
      const Member& member = formation_.members[static_cast<size_t>(rank)];
      notice.peers += (notice.peers.empty() ? "" : ", ") + member.task;
      notice.text += (notice.text.empty() ? "" : ", ") + Describe(member);
      if (missing.size() == 1) notice.address = member.address;
    }
    notice.text = StrCat("waits for a connection with ", notice.text);
    if (!socket_failure_.ok()) notice.text += StrCat(": ", Message(socket_failure_));
    return notice;
  }
  AwaitedNotice notice = awaited_;
  const bool all = phase_ == Phase::kReady;
  if (notice.text.empty() && !all) {
    // The leader waits for no missing task. It forms the next generation once the members of the
    // running generation have finished their step.
    return {.peers = leader_.task,
            .address = leader_.address,
            .text = StrCat("waits for the group, which trains without this task: ",
                           Describe(leader_), " forms its next generation")};
  }
  if (notice.text.empty()) {
    notice = {.peers = leader_.task, .address = leader_.address, .text = Describe(leader_)};
  }
  notice.text =
      StrCat("waits for ", notice.text, all ? " to connect with the group" : " to join the group");
  return notice;
}

}  // namespace tfjob::collectives
