#include "runtime/collectives/endpoint/remote_group.h"

#include "runtime/base/log.h"
#include "runtime/collectives/endpoint/dialler.h"
#include "runtime/collectives/endpoint/endpoint_state.h"
#include "runtime/collectives/endpoint/leader_link.h"
#include "runtime/collectives/endpoint/watched_communicator.h"

namespace tfjob::collectives {
namespace {

constexpr Logger kRemoteGroupLog("collectives");
constexpr char kStartedAlone[] =
    "; a task that was started while the job had a single replica has no TF_CONFIG, and cannot be "
    "joined: restart its pod";
// The interval at which a wait checks whether the task was asked to stop.
constexpr Duration kPoll{100ms};
// How long Leave, Depart, Finish and Fail wait for the receipt of their announcement.
constexpr Duration kFarewell{5s};

class RemoteGroup : public Group {
 public:
  RemoteGroup(std::shared_ptr<Endpoint::State> state, GroupOptions options)
      : state_(std::move(state)),
        stop_requested_(std::move(options.stop_requested)),
        find_claim_(std::move(options.find_claim)),
        dialler_(state_) {
    state_->SetSink(std::move(options.on_event));
    {
      MutexLock lock(state_->mutex);
      state_->asked_to_end = std::move(options.asked_to_end);
      state_->stop_patience = options.stop_patience;
    }
    if (state_->task != 0 || state_->options.shrinks) link_ = std::make_unique<LeaderLink>(state_);
  }

  ~RemoteGroup() override {
    link_.reset();
    {
      MutexLock lock(state_->mutex);
      if (state_->communicator != nullptr) state_->communicator->Abort(Cancelled("the task ends"));
      state_->communicator = nullptr;
      state_->asked_to_end = nullptr;
    }
    state_->SetSink(nullptr);
  }

  StatusOr<Generation> Join(const Joining& joining) override;
  void Announce(state::WorkPhase phase, Duration limit) override { state_->Announce(phase, limit); }
  bool TaskWaits() override;
  bool IsCurrent(int64_t generation) override;
  void StateIsShared() override;
  void NoteClaim(int64_t claim) override;
  std::function<bool()> WriteGuard() override;
  Status Leave() override;
  Status Depart() override;
  void NoteDepartures(int64_t generation, const std::vector<Member>& members) override;
  Status Finish() override;
  Status Fail(const Status& failure) override;
  std::vector<state::PeerState> Peers() override;

 private:
  bool Stopped() const { return stop_requested_ && stop_requested_(); }
  // A generation that has begun, but has no communicator yet.
  struct Begun {
    Generation generation;
    std::vector<wire::UniqueFd> sockets;
  };
  // Finds the claim that the leader has asked for, if any. If it cannot, departs, and returns the
  // error.
  Status FindClaim() ABSL_LOCKS_EXCLUDED(state_->mutex);
  // Waits until a generation begins. Returns Unavailable if it has already ended.
  StatusOr<Begun> AwaitGeneration() ABSL_LOCKS_EXCLUDED(state_->mutex);
  // Creates the generation's communicator, and returns the generation with it. Returns Unavailable
  // if the generation has ended.
  StatusOr<Generation> Begin(Begun begun) ABSL_LOCKS_EXCLUDED(state_->mutex);
  bool Goes(int64_t generation) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    return state_->member.phase() == GroupMember::Phase::kGoing &&
           state_->channel.generation == generation;
  }
  // Returns OK if it is still useful to connect the ranks of this generation. Otherwise, returns an
  // error with the reason.
  Status WhyNotBegin(int64_t generation) ABSL_LOCKS_EXCLUDED(state_->mutex);
  // Notifies the leader that this task exits. If this task itself leads and may write, it instead
  // keeps its right to write until it departs. Returns Cancelled.
  Status DepartInWait() ABSL_LOCKS_EXCLUDED(state_->mutex);
  void AskToJoin(const Joining& joining) ABSL_LOCKS_EXCLUDED(state_->mutex);
  // Hands the communicator over to the caller, unless the generation has ended.
  std::unique_ptr<Communicator> Adopt(const Generation& generation,
                                      std::unique_ptr<Communicator> made)
      ABSL_LOCKS_EXCLUDED(state_->mutex);
  // Ends the job. Returns false if this task does not lead.
  bool End(const Status& failure) ABSL_LOCKS_EXCLUDED(state_->mutex);
  void ReportWait() ABSL_LOCKS_EXCLUDED(state_->mutex);

  const std::shared_ptr<Endpoint::State> state_;
  const std::function<bool()> stop_requested_;
  const std::function<Status(int64_t)> find_claim_;
  Dialler dialler_;
  std::unique_ptr<LeaderLink> link_;  // null if this task always leads
  Duration next_report_{0};
  Status lacks_claim_;  // find_claim's error, if it has returned one
};

StatusOr<Generation> RemoteGroup::Join(const Joining& joining) {
  if (joining.agreement.size() > kMostAgreementBytes) {
    return InvalidArgument("the agreement of this task has ", joining.agreement.size(),
                           " bytes, more than ", kMostAgreementBytes);
  }
  next_report_ = RealClock().Monotonic() + state_->options.report_interval;
  for (;;) {
    AskToJoin(joining);
    StatusOr<Begun> begun = AwaitGeneration();
    StatusOr<Generation> generation =
        begun.ok() ? Begin(*std::move(begun)) : StatusOr<Generation>(begun.status());
    // Wait for the next generation, because this one ended before the caller could use it.
    if (!lacks_claim_.ok()) return lacks_claim_;
    if (absl::IsUnavailable(generation.status()) || absl::IsAborted(generation.status())) continue;
    return generation;
  }
}

void RemoteGroup::AskToJoin(const Joining& joining) {
  MutexLock lock(state_->mutex);
  state_->member.Join(joining);
  state_->Pump();
}

StatusOr<RemoteGroup::Begun> RemoteGroup::AwaitGeneration() {
  using Phase = GroupMember::Phase;
  for (;;) {
    dialler_.Dial();
    {
      MutexLock lock(state_->mutex);
      if (state_->member.phase() == Phase::kEnded) return state_->member.end();
      if (state_->member.phase() == Phase::kIdle) return Unavailable("the generation has ended");
      if (state_->member.phase() == Phase::kGoing) {
        Begun begun{.generation = {}, .sockets = std::move(state_->sockets)};
        begun.generation.number = state_->member.formation().generation;
        begun.generation.members = state_->member.formation().members;
        begun.generation.rank = state_->member.rank();
        begun.generation.source = state_->member.formation().source;
        return begun;
      }
      state_->changed.WaitFor(state_->mutex, kPoll);
    }
    if (Stopped()) return DepartInWait();
    RETURN_IF_ERROR(FindClaim());
    ReportWait();
  }
}

Status RemoteGroup::FindClaim() {
  int64_t claim = 0;
  {
    MutexLock lock(state_->mutex);
    claim = state_->member.ClaimToFind();
  }
  if (claim == 0) return OkStatus();
  lacks_claim_ = find_claim_ ? find_claim_(claim) : OkStatus();
  if (!lacks_claim_.ok()) {
    (void)Depart();
    return lacks_claim_;
  }
  MutexLock lock(state_->mutex);
  state_->member.FoundClaim(claim);
  state_->Pump();
  return OkStatus();
}

StatusOr<Generation> RemoteGroup::Begin(Begun begun) {
  Generation& generation = begun.generation;
  StatusOr<std::unique_ptr<Communicator>> made = state_->options.make_communicator(
      generation.rank, std::move(begun.sockets),
      [this, number = generation.number] { return WhyNotBegin(number); });
  if (!made.ok() && Stopped()) return DepartInWait();
  if (!made.ok()) return state_->Failed(generation.number, generation.members, made.status());
  generation.communicator = Adopt(generation, *std::move(made));
  if (generation.communicator == nullptr) return Unavailable("the generation has ended");
  kRemoteGroupLog.Info("joined the group", {{"generation", generation.number},
                                            {"leader", generation.members[0].task},
                                            {"rank", generation.rank},
                                            {"tasks", generation.members.size()}});
  return std::move(generation);
}

Status RemoteGroup::WhyNotBegin(int64_t generation) {
  if (Stopped()) return Unavailable("this task was asked to stop");
  MutexLock lock(state_->mutex);
  return Goes(generation) ? OkStatus() : Unavailable("the generation has ended");
}

Status RemoteGroup::DepartInWait() {
  MutexLock lock(state_->mutex);
  if (state_->options.shrinks && state_->HasRightToWrite()) {
    state_->member.HoldBack();
    state_->machine->HoldBack(RealClock().Monotonic());
  } else {
    state_->member.Depart();
  }
  state_->Pump();
  return Cancelled("this task was asked to stop while it waited for its group");
}

std::unique_ptr<Communicator> RemoteGroup::Adopt(const Generation& generation,
                                                 std::unique_ptr<Communicator> made) {
  std::shared_ptr<Communicator> communicator = std::move(made);
  MutexLock lock(state_->mutex);
  if (!Goes(generation.number)) return nullptr;
  state_->communicator = communicator;
  auto on_failure = [state = state_, number = generation.number, members = generation.members](
                        const Status& why) { return state->Failed(number, members, why); };
  auto on_drop = [state = state_, inner = communicator.get()] {
    MutexLock lock(state->mutex);
    if (state->communicator.get() == inner) state->communicator = nullptr;
  };
  return std::make_unique<WatchedCommunicator>(std::move(communicator), std::move(on_failure),
                                               std::move(on_drop));
}

void RemoteGroup::ReportWait() {
  const Duration now = RealClock().Monotonic();
  if (now < next_report_) return;
  next_report_ = now + state_->options.report_interval;
  AwaitedNotice awaited;
  {
    MutexLock lock(state_->mutex);
    awaited = state_->member.Awaited();
    // A new worker may wait for a task that cannot be joined.
    const bool is_alone = state_->options.least_tasks > 0 && !state_->member.connected();
    if (is_alone && !awaited.text.empty()) awaited.text += kStartedAlone;
  }
  if (awaited.text.empty()) return;
  state_->Say(state::PeerEvent::Kind::kWaiting, awaited.peers, awaited.address, awaited.text);
}

bool RemoteGroup::TaskWaits() {
  MutexLock lock(state_->mutex);
  return state_->machine != nullptr && state_->machine->TaskWaits(RealClock().Monotonic());
}

bool RemoteGroup::IsCurrent(int64_t generation) {
  MutexLock lock(state_->mutex);
  return Goes(generation);
}

void RemoteGroup::NoteClaim(int64_t claim) {
  MutexLock lock(state_->mutex);
  if (state_->machine != nullptr) state_->machine->NoteClaim(claim);
}

void RemoteGroup::StateIsShared() {
  MutexLock lock(state_->mutex);
  state_->state_is_shared = state_->communicator != nullptr;
  if (state_->state_is_shared) state_->member.Shared(state_->channel.generation);
}

std::function<bool()> RemoteGroup::WriteGuard() {
  if (!state_->options.shrinks) return [] { return true; };
  return [weak = std::weak_ptr(state_)] {
    const std::shared_ptr<Endpoint::State> state = weak.lock();
    return state != nullptr && state->MayWrite();
  };
}

// Waits for the leader's receipt, because the other tasks would wait for a task that exits
// unannounced.
Status RemoteGroup::Leave() {
  const auto deadline = SteadyNow() + kFarewell;
  MutexLock lock(state_->mutex);
  state_->member.Leave();
  state_->Pump();
  while (!state_->member.farewell_heard() && state_->member.phase() != GroupMember::Phase::kEnded) {
    if (state_->changed.WaitUntil(state_->mutex, deadline)) continue;
    return Unavailable(state_->Place(state_->leader),
                       ", which leads the group, did not answer within ", FormatDuration(kFarewell),
                       ", and may wait for this task");
  }
  return OkStatus();
}

// Returns OK even if the leader does not answer, because closing the session has the same effect as
// the announcement.
Status RemoteGroup::Depart() {
  const auto deadline = SteadyNow() + kFarewell;
  MutexLock lock(state_->mutex);
  state_->member.Depart();
  state_->Pump();
  while (state_->member.connected() && !state_->member.farewell_heard() &&
         state_->member.phase() != GroupMember::Phase::kEnded) {
    if (!state_->changed.WaitUntil(state_->mutex, deadline)) break;
  }
  return OkStatus();
}

void RemoteGroup::NoteDepartures(int64_t generation, const std::vector<Member>& members) {
  std::vector<ResignedProcess> processes;
  for (const Member& member : members) {
    processes.push_back(
        {.task = member.task, .incarnation = member.incarnation, .generation = generation});
  }
  MutexLock lock(state_->mutex);
  state_->member.NoteResigned(processes);
}

bool RemoteGroup::End(const Status& failure) {
  const auto deadline = SteadyNow() + kFarewell;
  MutexLock lock(state_->mutex);
  if (state_->machine == nullptr) return false;
  state_->machine->Finish(failure);
  state_->Pump();
  // Another task may start to lead in the meantime.
  while (state_->machine != nullptr && !state_->machine->EndIsKnown()) {
    if (!state_->changed.WaitUntil(state_->mutex, deadline)) break;
  }
  return true;
}

Status RemoteGroup::Finish() {
  if (End(OkStatus())) return OkStatus();
  MutexLock lock(state_->mutex);
  return FailedPrecondition("only the leader of a group, ", state_->Place(state_->leader),
                            ", ends the job");
}

Status RemoteGroup::Fail(const Status& failure) {
  if (End(failure)) return OkStatus();
  const auto deadline = SteadyNow() + kFarewell;
  MutexLock lock(state_->mutex);
  state_->member.FailRun(failure);
  state_->Pump();
  while (state_->member.phase() != GroupMember::Phase::kEnded) {
    if (state_->changed.WaitUntil(state_->mutex, deadline)) continue;
    return Unavailable(state_->Place(state_->leader),
                       ", which leads the group, did not answer within ", FormatDuration(kFarewell),
                       ", and may not know that the run has failed");
  }
  return OkStatus();
}

std::vector<state::PeerState> RemoteGroup::Peers() {
  using state::PeerHealth;
  const auto health = [](const rpc::Connection* connection, bool suspected) {
    if (connection == nullptr) return PeerHealth::kUnknown;
    return suspected ? PeerHealth::kSuspected : PeerHealth::kConnected;
  };
  std::vector<state::PeerState> peers;
  MutexLock lock(state_->mutex);
  for (size_t i = 0; i < state_->options.tasks.size(); ++i) {
    const GroupTask& task = state_->options.tasks[i];
    if (static_cast<int>(i) == state_->task || !state_->IsPresent(static_cast<int>(i))) continue;
    state::PeerState peer = state::PeerOf(task.type, task.index);
    peer.address = state_->AddressOf(static_cast<int>(i));
    const bool leads = static_cast<int>(i) == state_->leader;
    const rpc::Connection* connection = leads ? state_->to_leader : nullptr;
    bool suspected = state_->leader_suspected;
    for (const auto& [id, session] : state_->sessions) {
      if (session.task != static_cast<int>(i)) continue;
      connection = session.connection;
      suspected = session.suspected;
    }
    peer.health = health(connection, suspected);
    if (connection != nullptr) peer.silence = connection->Silence();
    // Members have no streams to each other. They are connected only by sockets, and only while
    // they belong to a generation.
    const bool others = state_->machine == nullptr && !leads;
    if (others && state_->communicator != nullptr) peer.health = PeerHealth::kConnected;
    if (state_->stuck.peer == StrCat(task.type, " ", task.index)) peer.health = PeerHealth::kStuck;
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace

std::unique_ptr<Group> MakeRemoteGroup(std::shared_ptr<Endpoint::State> state,
                                       GroupOptions options) {
  return std::make_unique<RemoteGroup>(std::move(state), std::move(options));
}

}  // namespace tfjob::collectives
