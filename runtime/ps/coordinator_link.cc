#include "runtime/ps/coordinator_link.h"

#include "runtime/base/thread_pool.h"
#include "runtime/ps/server.h"
#include "runtime/ps/synchronizer.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

constexpr Duration kConnectTimeout{1s};
constexpr Duration kRetryInterval{100ms};

}  // namespace

CoordinatorLink::CoordinatorLink(Synchronizer& synchronizer, rpc::Connector& connector,
                                 rpc::PeerWatch& watch, std::string address, rpc::Identity self)
    : synchronizer_(synchronizer),
      connector_(connector),
      watch_(watch),
      address_(std::move(address)),
      self_(std::move(self)) {
  thread_ = std::thread([this] {
    SetThreadName("ps-coordinator");
    Loop();
  });
}

CoordinatorLink::~CoordinatorLink() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (live_ != nullptr) live_->Cancel(Cancelled("the server stops"));
    wake_.NotifyAll();
  }
  thread_.join();
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
  while (!Stopping()) {
    StatusOr<rpc::OpenStream> stream =
        connector_.Connect(address_, kParameterService, self_, kConnectTimeout);
    if (stream.ok()) RunOnce(*stream->transport);
    MutexLock lock(mutex_);
    if (!stopping_) wake_.WaitFor(mutex_, kRetryInterval);
  }
}

void CoordinatorLink::RunOnce(rpc::Transport& transport) {
  rpc::Connection connection(transport, *this);
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    live_ = &connection;
  }
  const auto ticket =
      watch_.Add({.connection = &connection, .peer = StrCat("ps 0 (", address_, ")")});
  synchronizer_.Connected();
  (void)connection.Run();  // whatever ended it, it is made anew
  watch_.Remove(ticket);
  MutexLock lock(mutex_);
  live_ = nullptr;
}

}  // namespace tfjob::ps
