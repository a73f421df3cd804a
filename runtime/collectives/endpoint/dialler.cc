#include "runtime/collectives/endpoint/dialler.h"

#include <algorithm>

namespace tfjob::collectives {
namespace {

constexpr size_t kMostThreads = 8;
// An attempt has a short time limit, because it cannot be interrupted, and the destructor waits for
// it.
constexpr Duration kDialAttempt{1s};
constexpr Duration kDialPause{100ms};

}  // namespace

Dialler::~Dialler() {
  {
    MutexLock lock(state_->mutex);
    stopping_ = true;
    wake_.NotifyAll();
  }
  for (Thread& thread : threads_) thread.Join();
}

void Dialler::Dial() {
  size_t missing = 0;
  {
    MutexLock lock(state_->mutex);
    if (state_->member.phase() != GroupMember::Phase::kConnecting) return;
    for (const int rank : state_->member.MissingSockets()) missing += rank > state_->member.rank();
    if (missing > 0) wake_.NotifyAll();
  }
  while (threads_.size() < std::min(missing, kMostThreads)) {
    threads_.emplace_back("dial", [this] { Loop(); });
  }
}

void Dialler::Loop() {
  for (;;) {
    Target target;
    {
      MutexLock lock(state_->mutex);
      std::optional<Target> next = NextTarget();
      for (; !stopping_ && !next; next = NextTarget()) wake_.Wait(state_->mutex);
      if (stopping_) return;
      target = *std::move(next);
    }
    StatusOr<rpc::DataConnection> dialled = Open(target);
    MutexLock lock(state_->mutex);
    Finish(target, std::move(dialled));
  }
}

std::optional<Dialler::Target> Dialler::NextTarget() {
  if (state_->member.phase() != GroupMember::Phase::kConnecting) return std::nullopt;
  if (channel_ != state_->channel) {
    channel_ = state_->channel;
    attempts_.clear();
  }
  const auto now = SteadyNow();
  for (const int rank : state_->member.MissingSockets()) {
    if (rank < state_->member.rank()) continue;  // the member of lower rank dials
    Attempt& attempt = attempts_[rank];
    if (attempt.running || now < attempt.next) continue;
    attempt.running = true;
    return Target{.channel = channel_,
                  .rank = rank,
                  .member = state_->member.formation().members[static_cast<size_t>(rank)]};
  }
  return std::nullopt;
}

StatusOr<rpc::DataConnection> Dialler::Open(const Target& target) const {
  const EndpointOptions& options = state_->options;
  ASSIGN_OR_RETURN(rpc::DataConnection dialled,
                   rpc::DialData(target.member.address, Print(target.channel), options.identity,
                                 options.credentials, kDialAttempt));
  if (rpc::TaskName(dialled.peer) != target.member.task ||
      dialled.peer.incarnation != target.member.incarnation) {
    return FailedPrecondition("this address belongs to another process, of ",
                              rpc::TaskName(dialled.peer));
  }
  return dialled;
}

void Dialler::Finish(const Target& target, StatusOr<rpc::DataConnection> dialled) {
  if (state_->channel != target.channel) return;  // the generation has ended
  attempts_[target.rank] = {.next = SteadyNow() + kDialPause};
  if (!dialled.ok()) {
    state_->member.SocketFailed(target.channel.generation, target.rank, dialled.status());
    return;
  }
  state_->sockets[static_cast<size_t>(target.rank)] = std::move(dialled->socket);
  state_->member.SocketConnected(target.channel.generation, target.rank);
  state_->Pump();
}

}  // namespace tfjob::collectives
