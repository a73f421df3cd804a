#include "runtime/ps/server/peer_session.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/ps/limits.h"
#include "runtime/ps/server/service.h"
#include "runtime/ps/server/synchronizer.h"
#include "runtime/ps/wire.h"
#include "runtime/state/run_failure.h"

namespace tfjob::ps {
namespace {

Status CheckStep(int64_t step) {
  if (step >= 0 && step <= kGreatestStep) return OkStatus();
  return InvalidArgument("step: expected 0 to ", kGreatestStep, ", got ", step);
}

}  // namespace

PeerSession::PeerSession(Service& service, rpc::Identity peer, std::string address,
                         rpc::Transport& transport, const ServerOptions& options)
    : service_(service),
      peer_(std::move(peer)),
      role_(service.RoleOf(peer_)),
      address_(std::move(address)),
      stream_(options.pool),
      buffers_(service.buffers()),
      connection_(transport, *this, {.max_queued_bytes = options.max_queued_bytes}) {}

PeerSession::~PeerSession() {
  if (fill_ != nullptr) service_.Abandon(fill_);
  int kept = 0;
  {
    MutexLock lock(mutex_);
    kept = static_cast<int>(kept_.size());
  }
  service_.OnTablesKept(-kept);
}

bool PeerSession::Allowed(const rpc::FrameHeader& header) {
  if (MaySend(role_, header.type)) return true;
  const Status why =
      PermissionDenied(rpc::TaskName(peer_), " may not send frames of type ", header.type,
                       ": the chief of this job is ", service_.ChiefName());
  switch (header.type) {
    case wire::kFill:
    case wire::kRenew:
    case wire::kTaken:
    case wire::kDropCopy:
    case wire::kParticipant:
    case wire::kAnnounce:
    case wire::kSetRate:
      service_.refusals().Note(peer_, address_, why);
      return false;  // these frames have no answer
    case wire::kPush:
    case wire::kPull:
    case wire::kPullRows:
      SendRefusal(header.sequence, why);
      return false;
    default:
      ReplyTo(header.sequence, why);
      return false;
  }
}

bool PeerSession::TakesInPlace(const rpc::FrameHeader& header) const {
  return header.type == wire::kPush || header.type == wire::kFill;
}

void PeerSession::OnFrame(rpc::IncomingFrame& frame) {
  if (!Allowed(frame.header)) return;
  switch (frame.header.type) {
    case wire::kPush:
      return OnPush(frame);
    case wire::kPull:
      return Pull(frame.header);
    case wire::kPullRows:
      return OnPullRows(frame);
    case wire::kDefine:
      return BeginFill(frame);
    case wire::kFill:
      return Fill(frame);
    case wire::kFilled:
      return EndFill(frame);
    case wire::kSnapshot:
      return BeginCopy(frame.header.sequence);
    case wire::kReadCopy:
      return ReadCopy(frame.header, frame.ReadString(frame.remaining()));
    case wire::kDropCopy:
      return DropCopy(static_cast<uint64_t>(frame.header.value));
    default:
      return Request(frame);
  }
}

void PeerSession::Request(rpc::IncomingFrame& frame) {
  const uint64_t sequence = frame.header.sequence;
  const bool ending = (frame.header.flags & wire::kEnding) != 0;
  switch (frame.header.type) {
    case wire::kQuery: {
      const bool brief = (frame.header.flags & wire::kBrief) != 0;
      auto [header, body] =
          brief ? std::pair(service_.DescribeStep(), std::string()) : service_.DescribeState(*this);
      header.sequence = sequence;
      return connection_.Send(header, std::move(body));
    }
    case wire::kLeave:
      // A task that was asked to stop will be restarted, unless the whole job is stopped.
      service_.Leave(worker(), incarnation(), /*for_good=*/!ending);
      // Answer first, because a server that is shutting down may close this connection once the
      // task has left.
      ReplyTo(sequence, OkStatus());
      if (ending) service_.OnTaskEnding(*this);
      return;
    case wire::kRegister:
      return Register(frame.header);
    case wire::kAnnounce:
      return Announce(frame.header.value);
    case wire::kHold:
      return service_.Hold(*this, sequence);
    case wire::kRenew:
      return service_.Renew(worker());
    case wire::kRelease:
      return ReplyTo(sequence, service_.Release(worker(), ending));
    case wire::kTaken:
      return service_.OnTaken();
    case wire::kSetRate:
      return service_.refusals().Note(
          peer_, address_,
          service_.SetLearningRate(
              {.rate = std::bit_cast<double>(frame.header.value), .step = frame.header.step}));
    case wire::kFinish:
      ReplyTo(sequence, OkStatus());
      return service_.Finish();
    case wire::kFail:
      ReplyTo(sequence, OkStatus());
      return service_.Fail(*this,
                           frame.ReadString(std::min(frame.remaining(), state::kMaxFailureBytes)));
    case wire::kParticipant:
      return service_.FromParticipant(*this, frame.ReadString(frame.remaining()));
    default:
      return ReplyTo(sequence, Unimplemented("no request of type ", frame.header.type));
  }
}

void PeerSession::Register(const rpc::FrameHeader& header) {
  const StatusOr<Service::Registration> own =
      service_.RegisterProcess(*this, header.step, header.value);
  if (!own.ok()) return ReplyTo(header.sequence, own.status());
  incarnation_ = own->incarnation;
  connection_.Send({.type = wire::kRegistered,
                    .sequence = header.sequence,
                    .step = own->incarnation,
                    .value = own->drawn});
}

void PeerSession::Announce(int64_t incarnation) {
  const Status known = service_.Announce(*this, incarnation);
  // Close the connection of a superseded process; otherwise, the process and its successor would
  // keep replacing each other. An announcement has no answer that could report the error.
  if (!known.ok()) {
    service_.refusals().Note(peer_, address_, known);
    return connection_.Cancel(known);
  }
  incarnation_ = incarnation;
}

void PeerSession::ReplyTo(uint64_t sequence, const Status& status) {
  service_.refusals().Note(peer_, address_, status);
  connection_.Send(
      {.type = wire::kReply, .sequence = sequence, .value = static_cast<int64_t>(status.code())},
      std::string(Message(status)));
}

// ---- the chief fills the server

void PeerSession::BeginFill(rpc::IncomingFrame& frame) {
  // Free an earlier store that this session was filling before the next one is allocated.
  fill_ = nullptr;
  DropOldCopies();
  StatusOr<std::shared_ptr<Store>> store =
      service_.Define(frame.ReadString(frame.remaining()), frame.header.value);
  fill_ = store.ok() ? *std::move(store) : nullptr;
  fill_status_ = store.status();
  ReplyTo(frame.header.sequence, fill_status_);
}

void PeerSession::Fill(rpc::IncomingFrame& frame) {
  // If BeginFill has failed, skip the frames that were already on their way.
  if (fill_ == nullptr) return;
  for (const rpc::SegmentInfo& segment : frame.segments) {
    Status status = fill_->CheckRange(segment.index, segment.flags, segment.offset, segment.length);
    if (!status.ok()) {
      fill_status_ = status;
      return;
    }
    status = frame.Receive(
        fill_->FillTarget(segment.index, segment.flags, segment.offset, segment.length));
    if (!status.ok()) {  // the stream is broken
      fill_status_ = status;
      return;
    }
  }
}

void PeerSession::EndFill(rpc::IncomingFrame& frame) {
  Status status = fill_status_;
  if (status.ok() && fill_ == nullptr) status = FailedPrecondition("nothing was defined");
  if (status.ok() && !fill_->filled()) status = InvalidArgument("the state is incomplete");
  if (status.ok()) status = CheckStep(frame.header.step);
  // Set the ledger before the state goes into service, because a contribution repeated after a
  // restore must be recognised from its first frame on.
  if (status.ok()) {
    fill_->step() = frame.header.step;
    status = fill_->SetLedger(frame.ReadString(frame.remaining()));
  }
  if (status.ok()) {
    status = service_.Activate(std::move(fill_), worker());
  }
  fill_ = nullptr;
  ReplyTo(frame.header.sequence, status);
}

// ---- exchanges

void PeerSession::Pull(const rpc::FrameHeader& header) {
  if (!BeginExchange(header)) return;
  push_.remaining = 0;
  if (push_.synchronous) return service_.synchronizer().Pull(push_.name, header.value);
  Answer(header.sequence, push_.store->step(), 0, 0, true);
}

bool PeerSession::BeginExchange(const rpc::FrameHeader& header) {
  push_ = {};
  StatusOr<std::shared_ptr<Store>> store = service_.StoreOf(header.value);
  {
    MutexLock lock(mutex_);
    reply_.Begin(store.ok() ? *store : nullptr, header.sequence);
  }
  Status status = store.status();
  if (status.ok()) status = CheckStep(header.step);
  if (status.ok() && incarnation() == 0) {
    status = FailedPrecondition(rpc::TaskName(peer_), " has not registered its process");
  }
  if (!status.ok()) {
    Refuse(header.sequence, status);
    return false;
  }
  push_.store = *std::move(store);
  // Store the mode in which the exchange started, because the state may be replaced while the bytes
  // arrive.
  push_.synchronous = push_.store->definition().mode == Mode::kSynchronous;
  push_.name = {worker(), incarnation(), header.sequence};
  push_.step = header.step;
  push_.remaining = push_.store->shards().size();
  return true;
}

bool PeerSession::BeginPush(const rpc::FrameHeader& header) {
  if (!BeginExchange(header)) return false;
  if (!push_.synchronous) return true;
  StatusOr<std::shared_ptr<Staging>> staging =
      service_.synchronizer().Stage(push_.name, push_.step, push_.store);
  if (!staging.ok()) {
    push_ = {};
    Refuse(header.sequence, staging.status());
    return false;
  }
  push_.staging = *std::move(staging);
  return true;
}

void PeerSession::OnPush(rpc::IncomingFrame& frame) {
  if ((frame.header.flags & wire::kFirst) != 0 && !BeginPush(frame.header)) return;
  // A contribution that arrives after the last copy would be lost with this server, so the sender
  // must repeat it.
  if (service_.frozen()) return PutOff(frame.header.sequence);
  // Skip the remaining frames of a contribution that was already refused.
  if (push_.store == nullptr || frame.header.sequence != push_.name.sequence) return;
  for (const rpc::SegmentInfo& segment : frame.segments) {
    if (Status status = TakeSegment(frame, segment); !status.ok()) {
      push_ = {};  // frees the arrived bytes, and admits the next contribution
      if (absl::IsUnavailable(status)) return;  // the stream is broken
      return Refuse(frame.header.sequence, status);
    }
  }
  if (push_.remaining == 0) return EndPush();
  SendValues(false);
}

void PeerSession::PutOff(uint64_t sequence) {
  push_ = {};
  {
    MutexLock lock(mutex_);
    put_off_ = sequence;
  }
  // Service::Unfreeze may already have called Resume.
  if (!service_.frozen()) Resume();
}

void PeerSession::Resume() {
  std::optional<uint64_t> sequence;
  {
    MutexLock lock(mutex_);
    sequence = std::exchange(put_off_, std::nullopt);
  }
  if (sequence) Refuse(*sequence, Aborted("the copy that this server waited for was not taken"));
}

void PeerSession::EndPush() {
  std::shared_ptr<Store> store = std::move(push_.store);
  if (push_.synchronous) {
    return service_.synchronizer().Staged(push_.name, store->epoch(), push_.step, push_.drawn,
                                          std::move(push_.staging));
  }
  // Refuse the contribution if the service has replaced this store, because the store's values are
  // outdated.
  if (StatusOr<std::shared_ptr<Store>> now = service_.StoreOf(store->epoch()); !now.ok()) {
    return Refuse(push_.name.sequence, now.status());
  }
  // Every server counts steps, because each contribution goes to all servers, and each server needs
  // the step for its updates. The counter of ps 0 is the job's global step, from which staleness is
  // computed.
  const std::optional<int64_t> before = service_.CountUnlessFrozen(*store, push_.name, push_.drawn);
  if (!before) return PutOff(push_.name.sequence);
  const int64_t step = store->step();
  const int64_t staleness = service_.index() == 0 ? std::max<int64_t>(0, *before - push_.step) : 0;
  {
    MutexLock lock(mutex_);
    reply_.final = {.type = wire::kValues,
                    .flags = wire::kLast,
                    .sequence = push_.name.sequence,
                    .step = step,
                    .value = staleness};
    reply_.last = true;
  }
  SendValues(true);
}

void PeerSession::SayFinished() {
  {
    MutexLock lock(mutex_);
    finished_ = true;
  }
  connection_.Wake();
}

void PeerSession::SayFailed(const Status& failure) {
  if (role_ != PeerRole::kChief && role_ != PeerRole::kTrains) return;
  connection_.Send({.type = wire::kFailed}, std::string(Message(failure)));
}

bool PeerSession::NextFrame(rpc::OutgoingFrame& frame) {
  if (NextValues(frame) || NextCopy(frame) || NextPiece(frame)) return true;
  MutexLock lock(mutex_);
  if (!std::exchange(finished_, false)) return false;
  frame.header = {.type = wire::kFinished};
  return true;
}

}  // namespace tfjob::ps
