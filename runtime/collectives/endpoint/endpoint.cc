#include "runtime/collectives/endpoint/endpoint.h"

#include "runtime/collectives/endpoint/endpoint_state.h"
#include "runtime/collectives/endpoint/remote_group.h"

namespace tfjob::collectives {
namespace {

// The leader's end of a member's stream.
class LeaderSession : public rpc::ConnectionHandler {
 public:
  LeaderSession(Endpoint::State& state, rpc::Transport& transport, int task)
      : state_(state), connection_(transport, *this), task_(task) {}

  void Run(int64_t incarnation) {
    const std::string name = state_.NameOf(task_), place = state_.Place(task_);
    if (!Open(incarnation).ok()) return;
    const auto ticket = state_.watch.Add(
        {.connection = &connection_,
         .peer = place,
         .on_change = state_.OnHealth(task_, [this](bool silent) { SetSuspected(silent); })});
    state_.Say(state::PeerEvent::Kind::kConnected, name, state_.AddressOf(task_),
               StrCat(place, " is connected with the group"));
    const Status why = connection_.Run();
    state_.watch.Remove(ticket);
    if (Close(why)) {
      state_.Say(state::PeerEvent::Kind::kLost, name, state_.AddressOf(task_),
                 StrCat(place, " was lost: ", Message(why)));
    }
  }

  void OnFrame(rpc::IncomingFrame& frame) override {
    StatusOr<std::string> text = TextOf(frame);
    StatusOr<ToLeader> message =
        text.ok() ? DecodeToLeader(*text) : StatusOr<ToLeader>(text.status());
    if (!message.ok()) return connection_.Cancel(message.status());
    MutexLock lock(state_.mutex);
    if (state_.machine == nullptr) return;  // the stream is about to be closed
    state_.machine->OnMessage(RealClock().Monotonic(), session_, *message);
    state_.Pump();
  }
  bool NextFrame(rpc::OutgoingFrame&) override { return false; }

 private:
  Status Open(int64_t incarnation) {
    MutexLock lock(state_.mutex);
    RETURN_IF_ERROR(MayFollow(state_.View(), rpc::TaskName(state_.options.identity), task_));
    session_ = state_.next_session++;
    RETURN_IF_ERROR(state_.machine->Connect(RealClock().Monotonic(), task_, incarnation, session_));
    state_.sessions[session_] = {.connection = &connection_, .task = task_};
    state_.Pump();
    return OkStatus();
  }
  // Returns true if the member was lost, that is, has neither left nor opened a new connection.
  bool Close(const Status& why) {
    MutexLock lock(state_.mutex);
    state_.sessions.erase(session_);
    if (state_.machine == nullptr) return false;
    state_.machine->Disconnect(RealClock().Monotonic(), session_, std::string(Message(why)));
    state_.Pump();
    return !state_.machine->IsConnected(task_) && !state_.machine->HasLeft(task_);
  }
  void SetSuspected(bool silent) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    state_.sessions[session_].suspected = silent;
  }

  Endpoint::State& state_;
  rpc::Connection connection_;
  const int task_;
  SessionId session_ = 0;
};

}  // namespace

Endpoint::Endpoint(EndpointOptions options) : state_(std::make_shared<State>(std::move(options))) {}

Endpoint::~Endpoint() = default;

std::unique_ptr<Group> Endpoint::MakeGroup(GroupOptions options) {
  return MakeRemoteGroup(state_, std::move(options));
}

Status Endpoint::Admit(const rpc::Identity& peer) {
  const int task = state_->TaskOf(peer);
  if (task < 0 || task == state_->task) {
    return FailedPrecondition("refused: ", rpc::TaskName(peer),
                              " is no other task that trains in this job");
  }
  MutexLock lock(state_->mutex);
  RETURN_IF_ERROR(MayFollow(state_->View(), rpc::TaskName(state_->options.identity), task));
  return state_->machine->Admit(task, peer.incarnation);
}

void Endpoint::Serve(const rpc::Identity& peer, const std::string&, rpc::Transport& transport) {
  LeaderSession(*state_, transport, state_->TaskOf(peer)).Run(peer.incarnation);
}

Status Endpoint::Admit(const rpc::Identity& peer, const std::string& channel) {
  const std::optional<DataChannel> generation = ParseDataChannel(channel);
  if (!generation) {
    return InvalidArgument("refused: the channel '", channel, "' names no generation of a group");
  }
  MutexLock lock(state_->mutex);
  return state_->intake.Admit({rpc::TaskName(peer), peer.incarnation}, *generation);
}

void Endpoint::Accept(rpc::DataConnection connection) {
  const std::optional<DataChannel> generation = ParseDataChannel(connection.channel);
  if (!generation) return;  // cannot happen, because Admit has accepted the channel
  MutexLock lock(state_->mutex);
  state_->intake.Accept({rpc::TaskName(connection.peer), connection.peer.incarnation}, *generation,
                        std::move(connection.socket));
  state_->Pump();
}

}  // namespace tfjob::collectives
