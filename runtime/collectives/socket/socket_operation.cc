#include "runtime/collectives/socket/socket_operation.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/collectives/peer_reason.h"

namespace tfjob::collectives {
namespace {

// A peer may send a reason before it closes its connection. At most this many reads look for the
// reason.
constexpr int kMostLastReads = 10'000;

}  // namespace

SocketOperations::SocketOperations(int rank, std::vector<wire::UniqueFd> sockets,
                                   std::vector<std::string> tasks, wire::UniqueFd wake,
                                   Duration announce_after)
    : rank_(rank),
      tasks_(std::move(tasks)),
      wake_(std::move(wake)),
      announce_after_(announce_after),
      peers_(sockets.size()),
      polled_(sockets.size() + 1) {
  for (size_t i = 0; i < sockets.size(); ++i) {
    if (static_cast<int>(i) == rank) continue;
    peers_[i].link = std::make_unique<SocketLink>(std::move(sockets[i]));
  }
}

Status SocketOperations::Begin(const Call& call) {
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
    busy_ = true;
    waiting_ = {.operation = operation_ + 1, .name = Name(call.operation), .on = -1};
  }
  ++operation_;
  announce_at_.reset();
  announced_ = false;
  waits_for_ = -1;
  return OkStatus();
}

Status SocketOperations::End(const Status& status) {
  run_ = nullptr;
  MutexLock lock(mutex_);
  busy_ = false;
  waiting_.on = -1;
  if (failure_.ok()) failure_ = status;
  if (!failure_.ok()) Part(FrameKind::kAbort);
  return failure_;
}

void SocketOperations::Abort(const Status& why) {
  ENFORCE(!why.ok(), "an abort needs a reason");
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = why;
    if (!busy_) Part(FrameKind::kAbort);
  }
  aborted_ = true;
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);  // fails only if the eventfd is already readable
}

void SocketOperations::Leave() {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = Cancelled(NameOf(rank_), " has left the group");
  Part(FrameKind::kLeave);
  for (Peer& peer : peers_) {
    if (peer.link) peer.link->Drain();
  }
}

void SocketOperations::Part(FrameKind kind) {
  if (std::exchange(parted_, true)) return;
  FrameHeader header = Header(kind);
  header.call = Call();
  header.number = static_cast<uint32_t>(failure_.code());
  for (Peer& peer : peers_) {
    if (!peer.link) continue;
    peer.link->Queue(header, Message(failure_));
    peer.link->Part();
  }
}

// Counts as busy, so that another thread that aborts leaves the links to this thread.
Status SocketOperations::CheckPeers() {
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
    busy_ = true;
  }
  const Status checked = ReadNotices();
  MutexLock lock(mutex_);
  busy_ = false;
  if (failure_.ok()) return checked;
  Part(FrameKind::kAbort);
  return failure_;
}

// Reads frames until one of them belongs to the next operation.
Status SocketOperations::ReadNotices() {
  PreparePoll();
  RETURN_IF_ERROR(Poll(0));
  for (int rank = 0; rank < ranks(); ++rank) {
    if (peers_[static_cast<size_t>(rank)].link) RETURN_IF_ERROR(CheckPeer(rank));
  }
  return OkStatus();
}

Status SocketOperations::CheckPeer(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  SocketLink& link = *peer.link;
  bool moved = true;
  while (moved && !(link.header() && link.header()->kind == FrameKind::kData)) {
    if (!link.header()) {
      auto received = link.Receive();
      if (!received.ok()) return Annotate(received.status(), NameOf(rank));
      moved = *received;
      if (link.header()) peer.heard = std::max(peer.heard, link.header()->operation);
    } else if (link.header()->kind == FrameKind::kCall) {
      RETURN_IF_ERROR(TakeAnnouncement(rank, *link.header()));
      link.Next();
    } else {
      ASSIGN_OR_RETURN(moved, ReceiveReason(rank));
    }
  }
  const bool gone = link.ended() && !link.header() && peer.left.ok();
  if (!gone) return OkStatus();
  return Unavailable(NameOf(rank), " closed its connection after operation ", operation_, ", ",
                     ToString(call_));
}

Waiting SocketOperations::CurrentWait() const {
  MutexLock lock(mutex_);
  return waiting_;
}

Status SocketOperations::Drive(PlanRun& run) {
  run_ = &run;
  call_ = run.plan().call;
  calls_[static_cast<size_t>(operation_) % kRemembered] = call_;
  RETURN_IF_ERROR(CheckWhatHasArrived());
  while (!run.done()) {
    if (aborted_) return Cancelled("aborted");  // End returns the reason
    bool moved = false;
    for (int i = 1; i < ranks(); ++i) {
      ASSIGN_OR_RETURN(const bool some, Move((rank_ + i) % ranks()));
      moved |= some;
    }
    if (!moved) RETURN_IF_ERROR(Wait());
  }
  return OkStatus();
}

Status SocketOperations::CheckWhatHasArrived() {
  for (int rank = 0; rank < ranks(); ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (!peer.link) continue;
    peer.announcements = 0;
    if (peer.link->header()) RETURN_IF_ERROR(CheckHeader(rank, *peer.link->header()));
    if (peer.announced == operation_) {
      RETURN_IF_ERROR(CheckAnnounced(rank, peer.announced, peer.announced_call));
    }
  }
  return OkStatus();
}

// Moves one frame, or a part of it, in each direction.
StatusOr<bool> SocketOperations::Move(int rank) {
  const SocketLink& link = *peers_[static_cast<size_t>(rank)].link;
  ASSIGN_OR_RETURN(const bool sent, SendTo(rank));
  if (link.broken()) return LastWords(rank);
  ASSIGN_OR_RETURN(const bool received, ReceiveFrom(rank));
  if (link.ended()) {
    const bool may_hold_frames = received || (link.header() && !link.receiving());
    if (run_->sends_left(rank) || (run_->receives_left(rank) && !may_hold_frames)) {
      return Lost(rank);
    }
  }
  return sent || received;
}

// Reads the frames that a peer sent before it closed its connection, until the reason is found. All
// frames have arrived, because this rank has detected that the connection is closed.
Status SocketOperations::LastWords(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  SocketLink& link = *peer.link;
  for (int reads = 0; reads < kMostLastReads && peer.left.ok(); ++reads) {
    const auto& header = link.header();
    const bool says_why =
        header && (header->kind == FrameKind::kAbort || header->kind == FrameKind::kLeave);
    if (header && !says_why) link.Skip();
    const auto moved = says_why ? ReceiveReason(rank) : link.Receive();
    if (!moved.ok()) return says_why ? moved.status() : Annotate(moved.status(), NameOf(rank));
    if (!*moved || link.ended()) break;
  }
  return Lost(rank);
}

StatusOr<bool> SocketOperations::SendTo(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  SocketLink& link = *peer.link;
  if (!peer.sending) {
    const PlanRun::Transfer transfer = run_->NextSend(rank);
    if (transfer.step != nullptr) {
      FrameHeader header = Header(FrameKind::kData);
      header.number = static_cast<uint32_t>(transfer.number);
      header.offset = transfer.step->offset;
      header.length = transfer.step->range.bytes;
      link.Begin(header, run_->Bytes(transfer.step->range));
      peer.sending = true;
    }
  }
  if (!link.wants_to_send()) return false;
  ASSIGN_OR_RETURN(const bool sent, link.Send());
  peer.moved |= sent && peer.sending;
  if (peer.sending && !link.sending()) {
    peer.sending = false;
    run_->SendDone(rank);
  }
  return sent;
}

StatusOr<bool> SocketOperations::ReceiveFrom(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  SocketLink& link = *peer.link;
  if (!link.header()) {
    auto moved = link.Receive();
    if (!moved.ok()) return Annotate(moved.status(), NameOf(rank));
    if (link.header()) {
      peer.heard = std::max(peer.heard, link.header()->operation);
      RETURN_IF_ERROR(CheckHeader(rank, *link.header()));
    }
    return *moved;
  }
  switch (link.header()->kind) {
    case FrameKind::kData:
      return ReceiveData(rank);
    case FrameKind::kCall:
      RETURN_IF_ERROR(TakeAnnouncement(rank, *link.header()));
      link.Next();
      return true;
    default:
      return ReceiveReason(rank);
  }
}

StatusOr<bool> SocketOperations::ReceiveData(int rank) {
  SocketLink& link = *peers_[static_cast<size_t>(rank)].link;
  if (!link.receiving()) {
    const PlanRun::Transfer transfer = run_->NextReceive(rank);
    if (transfer.step == nullptr) return false;
    RETURN_IF_ERROR(CheckTransfer(rank, *link.header(), transfer));
    link.ReceiveInto(run_->Bytes(transfer.step->range));
  }
  auto moved = link.Receive();
  if (!moved.ok()) return Annotate(moved.status(), NameOf(rank));
  peers_[static_cast<size_t>(rank)].moved |= *moved;
  if (!link.received()) return *moved;
  link.Next();
  if (run_->NextReceive(rank).step->range.memory == PlanMemory::kPlace) {
    RETURN_IF_ERROR(learn_(*run_, rank));
  }
  run_->ReceiveDone(rank);
  return true;
}

StatusOr<bool> SocketOperations::ReceiveReason(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  SocketLink& link = *peer.link;
  const auto length = static_cast<size_t>(link.header()->length);
  if (!link.receiving()) {
    link.ReceiveInto(std::as_writable_bytes(std::span(peer.reason)).first(length));
  }
  ASSIGN_OR_RETURN(const bool moved, link.Receive());
  if (!link.received()) return moved;
  const Status why =
      ReasonOfPeer(link.header()->number, {peer.reason.data(), length}, StatusCode::kUnavailable);
  const bool abort = link.header()->kind == FrameKind::kAbort;
  link.Next();
  if (abort) return why;
  peer.left = why;
  return true;
}

// Compares a frame with this rank's call as soon as its header has arrived.
Status SocketOperations::CheckHeader(int rank, const FrameHeader& header) const {
  if (header.kind != FrameKind::kData) return OkStatus();
  const bool later = header.operation > operation_;
  if (later && !run_->receives_left(rank)) return OkStatus();  // its bytes wait for their turn
  if (const Call* past = PastCall(header.operation); past != nullptr && header.call != *past) {
    return Mismatch(rank, header.operation, header.call, header.operation, *past);
  }
  if (header.operation != operation_) {
    return Mismatch(rank, header.operation, header.call, operation_, call_);
  }
  if (header.fingerprint != run_->plan().fingerprint) {
    return FailedPrecondition("operation ", operation_, ", ", ToString(call_), ": ", NameOf(rank_),
                              " and ", NameOf(rank),
                              " plan it differently; all ranks need the same costs");
  }
  if (!run_->receives_left(rank)) {
    return DataLoss(NameOf(rank), " sent a frame that is not in the plan of operation ", operation_,
                    ", ", ToString(call_));
  }
  return OkStatus();
}

Status SocketOperations::CheckTransfer(int rank, const FrameHeader& header,
                                       const PlanRun::Transfer& expected) const {
  if (header.number == static_cast<uint32_t>(expected.number) &&
      header.offset == expected.step->offset && header.length == expected.step->range.bytes) {
    return OkStatus();
  }
  return DataLoss(NameOf(rank), " sent frame ", header.number, " with ", header.length,
                  " bytes at ", header.offset, " in operation ", operation_, ", ", ToString(call_),
                  "; expected frame ", expected.number, " with ", expected.step->range.bytes,
                  " bytes at ", expected.step->offset);
}

Status SocketOperations::TakeAnnouncement(int rank, const FrameHeader& header) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  // Reject repeated announcements: a peer could use them to keep this rank busy.
  if (header.operation <= peer.announced) {
    return DataLoss(NameOf(rank), " announced operation ", header.operation, " again");
  }
  if (++peer.announcements > kMostAnnouncements) {
    return DataLoss(NameOf(rank), " announced more than ", kMostAnnouncements, " operations while ",
                    NameOf(rank_), " was in operation ", operation_);
  }
  peer.announced = header.operation;
  peer.announced_call = header.call;
  return CheckAnnounced(rank, header.operation, header.call);
}

Status SocketOperations::CheckAnnounced(int rank, int64_t operation, const Call& call) const {
  if (operation > operation_) return OkStatus();  // compared when this rank starts that operation
  const Call* own = PastCall(operation);
  if (own == nullptr || call == *own) return OkStatus();
  return Mismatch(rank, operation, call, operation, *own);
}

// Returns this rank's call with the ordinal `operation`, which may be the current one, or null if
// it is no longer kept.
const Call* SocketOperations::PastCall(int64_t operation) const {
  const int64_t age = operation_ - operation;
  if (operation <= 0 || age < 0 || age >= static_cast<int64_t>(kRemembered)) return nullptr;
  return &calls_[static_cast<size_t>(operation) % kRemembered];
}

Status SocketOperations::Mismatch(int rank, int64_t operation, const Call& call,
                                  int64_t own_operation, const Call& own) const {
  const auto called = [this](int who, int64_t number, const Call& what) {
    return StrCat(NameOf(who), " called ", ToString(what), " as operation ", number);
  };
  const std::string here = called(rank_, own_operation, own);
  const std::string there = called(rank, operation, call);
  return InvalidArgument(rank_ < rank ? here : there, ", but ", rank_ < rank ? there : here,
                         "; all ranks must call the same operations in the same order");
}

Status SocketOperations::Lost(int rank) const {
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  if (!peer.left.ok()) return peer.left;
  return Unavailable(NameOf(rank), " closed its connection in operation ", operation_, ", ",
                     ToString(call_));
}

Status SocketOperations::Wait() {
  PreparePoll();
  const Duration now = RealClock().Monotonic();
  NoteWait(RankToWaitFor(), now);
  const Status polled = Poll(PollTimeoutMs(now));
  MutexLock lock(mutex_);
  waiting_.on = -1;
  return polled;
}

// Waits until a socket is ready. Announces the call if the wait has taken too long.
Status SocketOperations::Poll(int timeout_ms) {
  const int ready = poll(polled_.data(), polled_.size(), timeout_ms);
  if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
  if (ready == 0 && timeout_ms != 0) Announce();
  for (int rank = 0; rank < ranks() && ready > 0; ++rank) {
    const short events = polled_[static_cast<size_t>(rank)].revents;
    if (events == 0) continue;
    const bool broken = events & (POLLHUP | POLLERR | POLLNVAL);
    peers_[static_cast<size_t>(rank)].link->Ready(broken || events & POLLIN,
                                                  broken || events & POLLOUT);
  }
  return OkStatus();
}

// A wait for a rank continues until data have moved to or from that rank. Frames without data do
// not end the wait.
void SocketOperations::NoteWait(int rank, Duration now) {
  const bool goes_on = rank == waits_for_ && rank >= 0 && !peers_[static_cast<size_t>(rank)].moved;
  if (!goes_on) waits_since_ = now;
  waits_for_ = rank;
  if (rank >= 0) peers_[static_cast<size_t>(rank)].moved = false;
  MutexLock lock(mutex_);
  waiting_.on = rank;
  waiting_.since = waits_since_;
}

void SocketOperations::PreparePoll() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    polled_[i] = {.fd = -1, .events = 0, .revents = 0};
    if (!peers_[i].link || peers_[i].link->ended()) continue;
    const SocketLink& link = *peers_[i].link;
    // Do not poll for a frame that has no place yet. The frame stays in the socket, so poll would
    // return at once, again and again.
    if (!link.header() || link.receiving()) polled_[i].events |= POLLIN;
    if (link.wants_to_send() && !link.writable()) polled_[i].events |= POLLOUT;
    if (polled_[i].events != 0) polled_[i].fd = link.fd();
  }
  polled_.back() = {.fd = wake_.get(), .events = POLLIN, .revents = 0};
}

// Returns the rank that is furthest behind among the ranks whose frames could be received now. The
// ranks that have started this operation also wait for that rank. If no frame could be received,
// returns the first rank to which a frame must still be sent.
int SocketOperations::RankToWaitFor() const {
  int latest = -1;
  const auto heard = [this](int rank) {
    return std::min(peers_[static_cast<size_t>(rank)].heard, operation_);
  };
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_ || run_->NextReceive(rank).step == nullptr) continue;
    if (latest < 0 || heard(rank) < heard(latest)) latest = rank;
  }
  if (latest >= 0) return latest;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank != rank_ && run_->sends_left(rank)) return rank;
  }
  return -1;
}

// Returns -1 (no time limit) once the call has been announced.
int SocketOperations::PollTimeoutMs(Duration now) {
  if (announced_) return -1;
  if (!announce_at_) announce_at_ = now + announce_after_;
  const Duration left = std::clamp(*announce_at_ - now, Duration(0), Duration(1h));
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

void SocketOperations::Announce() {
  announced_ = true;
  for (Peer& peer : peers_) {
    if (peer.link) peer.link->Queue(Header(FrameKind::kCall), "");
  }
}

FrameHeader SocketOperations::Header(FrameKind kind) const {
  return {.kind = kind,
          .call = call_,
          .operation = operation_,
          .fingerprint = run_ != nullptr ? run_->plan().fingerprint : 0};
}

std::string SocketOperations::NameOf(int rank) const {
  if (tasks_.empty()) return StrCat("rank ", rank);
  return StrCat("rank ", rank, " (", tasks_[static_cast<size_t>(rank)], ")");
}

}  // namespace tfjob::collectives
