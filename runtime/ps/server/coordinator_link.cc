#include "runtime/ps/server/coordinator_link.h"

#include "runtime/ps/limits.h"
#include "runtime/ps/server/server.h"
#include "runtime/ps/server/synchronizer.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

// The time limit of a connection attempt. It is short because an attempt cannot be interrupted, and
// the destructor waits for it.
constexpr Duration kCoordinatorTimeout{1s};

}  // namespace

CoordinatorLink::CoordinatorLink(Synchronizer& synchronizer, rpc::Connector& connector,
                                 rpc::PeerWatch& watch, Options options)
    : synchronizer_(synchronizer),
      connector_(connector),
      watch_(watch),
      options_(std::move(options)),
      name_(StrCat("ps 0 (", options_.address, ")")) {
  thread_ = Thread("ps-coordinator", [this] { Loop(); });
}

CoordinatorLink::~CoordinatorLink() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (live_ != nullptr) live_->Cancel(Cancelled("the server stops"));
    wake_.NotifyAll();
  }
  thread_.Join();
}

void CoordinatorLink::Send(std::string message) {
  MutexLock lock(mutex_);
  if (live_ != nullptr) live_->Send({.type = wire::kParticipant}, std::move(message));
}

void CoordinatorLink::OnFrame(rpc::IncomingFrame& frame) {
  if (frame.header.type != wire::kCoordinator) return;
  synchronizer_.FromCoordinator(frame.ReadString(frame.remaining()));
}

bool CoordinatorLink::Stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

void CoordinatorLink::Loop() {
  Duration heard = RealClock().Monotonic();
  while (!Stopping()) {
    StatusOr<rpc::OpenStream> stream =
        connector_.Connect(options_.address, kParameterService, options_.self, kCoordinatorTimeout);
    if (stream.ok()) RunOnce(*stream->transport);
    const Duration now = RealClock().Monotonic();
    if (stream.ok()) {
      heard = now;
    } else if (now - heard >= kReportInterval) {
      heard = now;
      Say(state::PeerEvent::Kind::kWaiting,
          StrCat("waits for ", name_, ", which owns the step: ", Message(stream.status())));
    }
    MutexLock lock(mutex_);
    if (!stopping_) wake_.WaitFor(mutex_, kRetryInterval);
  }
}

void CoordinatorLink::RunOnce(rpc::Transport& transport) {
  rpc::Connection connection(transport, *this);
  {
    MutexLock lock(mutex_);
    // Do not set live_ once stopping_ is true, because the destructor may already have cancelled
    // live_.
    if (stopping_) return;
    live_ = &connection;
  }
  const auto ticket =
      watch_.Add({.connection = &connection,
                  .peer = name_,
                  .on_change = [this](rpc::Health health, Duration s) { OnHealth(health, s); }});
  Say(state::PeerEvent::Kind::kConnected, StrCat("connected to ", name_, ", which owns the step"));
  synchronizer_.Connected();
  const Status why = connection.Run();
  watch_.Remove(ticket);
  {
    MutexLock lock(mutex_);
    // Reset live_ before the connection is destroyed on return, because Send and the destructor use
    // live_.
    live_ = nullptr;
    if (stopping_) return;
  }
  Say(state::PeerEvent::Kind::kLost,
      StrCat(name_, ", which owns the step, was lost: ", Message(why), "; reconnecting"));
}

void CoordinatorLink::OnHealth(rpc::Health health, Duration silence) const {
  if (health == rpc::Health::kSuspected) {
    Say(state::PeerEvent::Kind::kSuspected,
        StrCat(name_, " has been silent for ", FormatDuration(silence), ", will be given up at ",
               FormatDuration(options_.liveness.lease)));
  } else {
    Say(state::PeerEvent::Kind::kRecovered, StrCat(name_, " responds again"));
  }
}

void CoordinatorLink::Say(state::PeerEvent::Kind kind, const std::string& what) const {
  options_.on_event({.kind = kind, .peer = "ps 0", .address = options_.address, .message = what});
}

}  // namespace tfjob::ps
