#include "runtime/collectives/endpoint/leader_link.h"

#include "runtime/rpc/socket_connector.h"

namespace tfjob::collectives {
namespace {

// An attempt has a short time limit, because it cannot be interrupted, and the destructor waits for
// it.
constexpr Duration kAttempt{1s};
constexpr Duration kPause{200ms};

}  // namespace

LeaderLink::LeaderLink(std::shared_ptr<Endpoint::State> state)
    : state_(std::move(state)),
      connector_(rpc::MakeSocketConnector(state_->options.credentials)),
      name_(StrCat(state_->options.tasks[0].type, " ", state_->options.tasks[0].index)) {
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
  const rpc::Identity& self = state_->options.identity;
  for (;;) {
    StatusOr<rpc::OpenStream> stream =
        connector_->Connect(state_->AddressOf(0), Endpoint::kService, self, kAttempt);
    if (stream.ok() && state_->TaskOf(stream->peer) != 0) {
      stream = FailedPrecondition(state_->AddressOf(0), ": expected ", name_, ", got ",
                                  rpc::TaskName(stream->peer));
    }
    if (stream.ok() && WasReplaced(stream->peer)) {
      stream = Unavailable(state_->AddressOf(0), ": this process of ", name_,
                           " was replaced by another one");
    }
    if (stream.ok()) {
      RunOnce(*stream->transport, stream->peer.incarnation);
    } else if (!NoteFailure(stream.status())) {
      return;
    }
    MutexLock lock(state_->mutex);
    const auto deadline = SteadyNow() + kPause;
    while (!stopping_ && state_->changed.WaitUntil(state_->mutex, deadline)) {
    }
    if (stopping_) return;
  }
}

bool LeaderLink::WasReplaced(const rpc::Identity& leader) {
  MutexLock lock(state_->mutex);
  return state_->member.WasReplaced(name_, leader.incarnation);
}

bool LeaderLink::NoteFailure(const Status& why) {
  MutexLock lock(state_->mutex);
  const bool refused = absl::IsPermissionDenied(why);
  if (refused) {
    state_->member.Refused(FailedPrecondition(Message(why)));
  } else {
    state_->member.Disconnected(why);
  }
  state_->Pump();
  return !refused;
}

void LeaderLink::RunOnce(rpc::Transport& transport, int64_t incarnation) {
  rpc::Connection connection(transport, *this);
  {
    MutexLock lock(state_->mutex);
    // The destructor cancels the stream in to_leader, so to_leader must not be set once stopping_
    // is true.
    if (stopping_) return;
    state_->to_leader = &connection;
    state_->leader_incarnation = incarnation;
    state_->leader_suspected = false;
    state_->member.Connected();
    state_->Pump();
  }
  const auto ticket = state_->watch.Add(
      {.connection = &connection,
       .peer = state_->leader,
       .on_change = state_->OnHealth(0, [this](bool silent) ABSL_NO_THREAD_SAFETY_ANALYSIS {
         state_->leader_suspected = silent;
       })});
  state_->Say(state::PeerEvent::Kind::kConnected, name_, state_->AddressOf(0),
              StrCat("connected to ", state_->leader, ", which leads the group"));
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
  state_->Say(state::PeerEvent::Kind::kLost, name_, state_->AddressOf(0),
              StrCat(state_->leader, ", which leads the group, was lost: ", Message(why),
                     "; connecting again"));
}

}  // namespace tfjob::collectives
