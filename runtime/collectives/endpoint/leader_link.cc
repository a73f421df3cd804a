#include "runtime/collectives/endpoint/leader_link.h"

#include "runtime/rpc/socket_connector.h"

namespace tfjob::collectives {
namespace {

constexpr Duration kPause{200ms};

}  // namespace

LeaderLink::LeaderLink(std::shared_ptr<Endpoint::State> state)
    : state_(std::move(state)), connector_(rpc::MakeSocketConnector(state_->options.credentials)) {
  thread_ = Thread("group", [this] { Loop(); });
}

LeaderLink::~LeaderLink() {
  {
    MutexLock lock(state_->mutex);
    stopping_ = true;
    if (state_->to_leader != nullptr) state_->to_leader->Cancel(Cancelled("the task ends"));
    state_->changed.NotifyAll();
  }
  thread_.Join();
}

void LeaderLink::OnFrame(rpc::IncomingFrame& frame) {
  StatusOr<std::string> text = TextOf(frame);
  StatusOr<ToMember> message =
      text.ok() ? DecodeToMember(*text) : StatusOr<ToMember>(text.status());
  MutexLock lock(state_->mutex);
  if (!message.ok()) return state_->to_leader->Cancel(message.status());
  state_->member.OnMessage(*message);
  state_->Pump();
}

void LeaderLink::Loop() {
  while (Search()) {
    MutexLock lock(state_->mutex);
    if (state_->View().call_due) state_->next_call = RealClock().Monotonic() + kCallFirst;
    const auto deadline = SteadyNow() + kPause;
    while (!stopping_ && state_->changed.WaitUntil(state_->mutex, deadline)) {
    }
    if (stopping_) return;
  }
}

bool LeaderLink::Search() {
  std::vector<int> tasks;
  {
    MutexLock lock(state_->mutex);
    if (!Searches(state_->View())) return true;
    tasks = TasksToAsk(state_->View(), static_cast<int>(state_->options.tasks.size()));
  }
  for (const int task : tasks) {
    if (state_->AddressOf(task).empty()) continue;
    const StatusOr<rpc::OpenStream> stream = Ask(task);
    if (stream.ok()) {
      RunOnce(task, *stream->transport, stream->peer.incarnation);
      return true;
    }
    if (!NoteFailure(task, stream.status())) return false;
    MutexLock lock(state_->mutex);
    if (stopping_) return false;
  }
  MutexLock lock(state_->mutex);
  if (MayLead(state_->View())) {
    state_->StartLeading();
    state_->Pump();
  }
  return true;
}

StatusOr<rpc::OpenStream> LeaderLink::Ask(int task) {
  const std::string address = state_->AddressOf(task);
  ASSIGN_OR_RETURN(
      rpc::OpenStream stream,
      connector_->Connect(address, Endpoint::kService, state_->options.identity, kAskAttempt));
  if (state_->TaskOf(stream.peer) != task) {
    return FailedPrecondition(address, ": expected ", state_->NameOf(task), ", got ",
                              rpc::TaskName(stream.peer));
  }
  if (WasReplaced(stream.peer)) {
    return Unavailable(address, ": this process of ", state_->NameOf(task),
                       " was replaced by another one");
  }
  return stream;
}

bool LeaderLink::WasReplaced(const rpc::Identity& leader) {
  MutexLock lock(state_->mutex);
  return state_->member.WasReplaced(rpc::TaskName(leader), leader.incarnation);
}

bool LeaderLink::NoteFailure(int task, const Status& why) {
  MutexLock lock(state_->mutex);
  const bool refused = absl::IsPermissionDenied(why);
  if (absl::IsAlreadyExists(why)) state_->occupied = task;
  if (refused) {
    if (state_->machine != nullptr) state_->StopLeading(std::string(Message(why)));
    state_->member.Refused(FailedPrecondition(Message(why)));
  } else if (state_->machine == nullptr && task == state_->leader) {
    state_->member.Disconnected(why);
  }
  state_->Pump();
  return !refused;
}

void LeaderLink::RunOnce(int task, rpc::Transport& transport, int64_t incarnation) {
  rpc::Connection connection(transport, *this);
  const std::string name = state_->NameOf(task), place = state_->Place(task);
  {
    MutexLock lock(state_->mutex);
    // The destructor cancels the stream in to_leader, so to_leader must not be set once stopping_
    // is true.
    if (stopping_ || !Searches(state_->View())) return;
    if (state_->machine != nullptr) state_->StopLeading(StrCat(place, " leads the group"));
    state_->to_leader = &connection;
    state_->leader = task;
    state_->occupied = -1;
    state_->leader_incarnation = incarnation;
    state_->leader_suspected = false;
    state_->member.Connected(state_->DescriptionOf(task));
    state_->Pump();
  }
  const auto ticket = state_->watch.Add(
      {.connection = &connection,
       .peer = place,
       .on_change = state_->OnHealth(task, [this](bool silent) ABSL_NO_THREAD_SAFETY_ANALYSIS {
         state_->leader_suspected = silent;
       })});
  state_->Say(state::PeerEvent::Kind::kConnected, name, state_->AddressOf(task),
              StrCat("connected to ", place, ", which leads the group"));
  const Status why = connection.Run();
  state_->watch.Remove(ticket);
  bool expected = false;
  {
    MutexLock lock(state_->mutex);
    // The connection is destroyed on return.
    state_->to_leader = nullptr;
    state_->member.Disconnected(why);
    state_->Pump();
    expected = stopping_ || state_->member.phase() == GroupMember::Phase::kEnded;
  }
  if (expected) return;
  state_->Say(
      state::PeerEvent::Kind::kLost, name, state_->AddressOf(task),
      StrCat(place, ", which leads the group, was lost: ", Message(why), "; connecting again"));
}

}  // namespace tfjob::collectives
