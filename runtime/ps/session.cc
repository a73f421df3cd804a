#include "runtime/ps/session.h"

#include "runtime/ps/service.h"
#include "runtime/ps/synchronizer.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

void RaiseTo(std::atomic<int64_t>& value, int64_t least) {
  int64_t seen = value;
  while (seen < least && !value.compare_exchange_weak(seen, least)) {
  }
}

}  // namespace

Session::Session(Service& service, rpc::Identity peer, std::string address,
                 rpc::Transport& transport, ThreadPool* pool)
    : service_(service),
      peer_(std::move(peer)),
      address_(std::move(address)),
      stream_(pool),
      connection_(transport, *this) {}

void Session::OnFrame(rpc::IncomingFrame& frame) {
  switch (frame.header.type) {
    case wire::kPush:
      return OnPush(frame);
    case wire::kPull:
      return Pull(frame.header);
    case wire::kDefine:
      return BeginFill(frame);
    case wire::kFill:
      return Fill(frame);
    case wire::kFilled:
      return EndFill(frame);
    case wire::kSnapshot:
      return BeginCopy(frame.header.sequence);
    default:
      return Request(frame);
  }
}

void Session::Request(rpc::IncomingFrame& frame) {
  const uint64_t sequence = frame.header.sequence;
  switch (frame.header.type) {
    case wire::kQuery: {
      auto [header, body] = service_.DescribeState();
      header.sequence = sequence;
      return connection_.Send(header, std::move(body));
    }
    case wire::kLeave:
      service_.Leave(worker(), peer_.incarnation);
      return ReplyTo(sequence, OkStatus());
    case wire::kHold:
      return service_.Hold(*this, sequence);
    case wire::kRelease:
      return ReplyTo(sequence, service_.Release(worker()));
    case wire::kFinish:
      ReplyTo(sequence, OkStatus());
      return service_.Finish();
    case wire::kParticipant:
      return service_.FromParticipant(peer_, frame.ReadString(frame.remaining()));
    default:
      return ReplyTo(sequence, Unimplemented("no request of type ", frame.header.type));
  }
}

void Session::ReplyTo(uint64_t sequence, const Status& status) {
  connection_.Send(
      {.type = wire::kReply, .sequence = sequence, .value = static_cast<int64_t>(status.code())},
      std::string(Message(status)));
}

// ---- the chief fills the server

void Session::BeginFill(rpc::IncomingFrame& frame) {
  StatusOr<std::shared_ptr<Store>> store =
      service_.Define(frame.ReadString(frame.remaining()), frame.header.value);
  fill_ = store.ok() ? *std::move(store) : nullptr;
  fill_status_ = store.status();
  ReplyTo(frame.header.sequence, fill_status_);
}

void Session::Fill(rpc::IncomingFrame& frame) {
  if (fill_ == nullptr) return;
  for (const rpc::SegmentInfo& segment : frame.segments) {
    Status status = fill_->CheckFill(segment.index, segment.flags, segment.offset, segment.length);
    if (!status.ok()) {
      fill_status_ = status;
      return;
    }
    frame.Read(fill_->FillTarget(segment.index, segment.flags, segment.offset, segment.length));
  }
}

void Session::EndFill(rpc::IncomingFrame& frame) {
  Status status = fill_status_;
  if (status.ok() && fill_ == nullptr) status = FailedPrecondition("nothing was defined");
  if (status.ok() && !fill_->filled()) status = InvalidArgument("the state has gaps");
  if (status.ok()) status = fill_->SetLedger(frame.ReadString(frame.remaining()));
  if (status.ok()) {
    fill_->step() = frame.header.step;
    status = service_.Activate(std::move(fill_));
  }
  fill_ = nullptr;
  ReplyTo(frame.header.sequence, status);
}

// ---- the state as a copy

void Session::BeginCopy(uint64_t sequence) {
  StatusOr<std::shared_ptr<Store>> store = service_.ReadyStore();
  if (!store.ok()) return ReplyTo(sequence, store.status());
  {
    MutexLock lock(mutex_);
    copy_ = {.store = *std::move(store), .sequence = sequence, .next = 0, .ledger = ""};
  }
  connection_.Wake();
}

bool Session::NextCopy(rpc::OutgoingFrame& frame) {
  std::shared_ptr<Store> store;
  int shard = -1;
  std::string ledger;
  {
    MutexLock lock(mutex_);
    if (copy_.store == nullptr) return false;
    store = copy_.store;
    frame.header = {.type = wire::kShard, .sequence = copy_.sequence, .value = store->epoch()};
    if (copy_.next < store->shards().size()) {
      shard = store->shards()[copy_.next++];
    } else {
      text_ = copy_.ledger + store->CounterLedger();
      copy_ = {};
    }
  }
  if (shard < 0) {
    frame.header.type = wire::kSnapshotEnd;
    frame.header.step = store->step();
    frame.segments.push_back({.bytes = std::as_bytes(std::span(text_))});
    return true;
  }
  const size_t bytes = store->bytes_of(shard);
  const int parts = 1 + store->slots_of(shard);
  rpc::BufferPool::Lease* lease = buffers_->Take(bytes * static_cast<size_t>(parts));
  lease->Share(parts);
  store->CopyState(shard, lease->data(), ledger);
  for (int part = 0; part < parts; ++part) {
    frame.segments.push_back({.index = static_cast<uint32_t>(shard),
                              .flags = static_cast<uint32_t>(part),
                              .bytes = {lease->data() + static_cast<size_t>(part) * bytes, bytes},
                              .release = rpc::BufferPool::Lease::Release,
                              .argument = lease});
  }
  MutexLock lock(mutex_);
  copy_.ledger += ledger;
  return true;
}

// ---- contributions

void Session::Pull(const rpc::FrameHeader& header) {
  push_ = {};
  if (!BeginPush(header)) return;
  push_.remaining = 0;
  if (Synchronizer* synchronizer = service_.synchronizer()) {
    synchronizer->Pull(push_.name, header.value);
    return;
  }
  Answer(header.sequence, push_.store->step(), 0, true);
}

bool Session::BeginPush(const rpc::FrameHeader& header) {
  push_ = {};
  StatusOr<std::shared_ptr<Store>> store = service_.StoreOf(header.value);
  {
    MutexLock lock(mutex_);
    reply_ = {.store = store.ok() ? *store : nullptr,
              .sequence = header.sequence,
              .shards = {},
              .last = false,
              .final = {}};
  }
  if (!store.ok()) {
    Refuse(header.sequence, store.status());
    return false;
  }
  push_.store = *std::move(store);
  push_.name = {worker(), peer_.incarnation, header.sequence};
  push_.step = header.step;
  push_.remaining = push_.store->shards().size();
  return true;
}

void Session::OnPush(rpc::IncomingFrame& frame) {
  if ((frame.header.flags & wire::kFirst) != 0) {
    if (!BeginPush(frame.header)) return;
    if (Synchronizer* synchronizer = service_.synchronizer()) {
      push_.staging = synchronizer->Stage(push_.name, push_.step, push_.store);
    } else if (service_.index() > 0) {
      RaiseTo(push_.store->step(), push_.step);
    }
  }
  if (push_.store == nullptr || frame.header.sequence != push_.name.sequence) return;
  for (const rpc::SegmentInfo& segment : frame.segments) {
    if (Status status = TakeShard(frame, segment); !status.ok()) {
      push_.store = nullptr;
      return Refuse(frame.header.sequence, status);
    }
  }
  if (push_.remaining == 0) return EndPush();
  connection_.Wake();
}

Status Session::TakeShard(rpc::IncomingFrame& frame, const rpc::SegmentInfo& segment) {
  Store& store = *push_.store;
  if (!store.Owns(segment.index) || push_.remaining == 0) {
    return InvalidArgument("shard ", segment.index, " does not belong into this contribution");
  }
  const auto shard = static_cast<int>(segment.index);
  const size_t bytes = store.bytes_of(shard);
  if (segment.length != 0 && segment.length != bytes) {
    return InvalidArgument("shard ", shard, ": expected ", bytes, " bytes, got ", segment.length);
  }
  --push_.remaining;
  if (push_.staging != nullptr) {
    push_.staging->Take(frame, shard, segment.length);
    return OkStatus();
  }
  if (service_.synchronizer() != nullptr) {  // decided already
    frame.Skip(segment.length);
    return OkStatus();
  }
  rpc::OwnedLease update(buffers_->Take(bytes));
  frame.Read(update->bytes(segment.length));
  store.Apply(shard, push_.name, update->bytes(segment.length), store.step(), stream_);
  MutexLock lock(mutex_);
  reply_.shards.push_back(shard);
  return OkStatus();
}

void Session::EndPush() {
  std::shared_ptr<Store> store = std::move(push_.store);
  if (Synchronizer* synchronizer = service_.synchronizer()) {
    return synchronizer->Staged(push_.name, store->epoch(), push_.step, std::move(push_.staging));
  }
  // A store that was replaced meanwhile has values that nobody wants.
  if (StatusOr<std::shared_ptr<Store>> now = service_.StoreOf(store->epoch()); !now.ok()) {
    return Refuse(push_.name.sequence, now.status());
  }
  int64_t step = store->step();
  int64_t staleness = 0;
  if (service_.index() == 0) {
    const int64_t before = store->Count(push_.name);
    staleness = std::max<int64_t>(0, before - push_.step);
    step = store->step();
  }
  MutexLock lock(mutex_);
  reply_.final = {.type = wire::kValues,
                  .flags = wire::kLast,
                  .sequence = push_.name.sequence,
                  .step = step,
                  .value = staleness};
  reply_.last = true;
  connection_.Wake();
}

void Session::Answer(uint64_t sequence, int64_t step, uint16_t flags, bool with_values) {
  {
    MutexLock lock(mutex_);
    if (reply_.sequence != sequence || reply_.store == nullptr) return;
    if (with_values) {
      reply_.shards.assign(reply_.store->shards().begin(), reply_.store->shards().end());
    }
    reply_.final = {.type = wire::kValues,
                    .flags = static_cast<uint16_t>(flags | wire::kLast),
                    .sequence = sequence,
                    .step = step};
    reply_.last = true;
  }
  connection_.Wake();
}

void Session::Refuse(uint64_t sequence, const Status& why) {
  {
    MutexLock lock(mutex_);
    if (reply_.sequence != sequence) return;
    reply_ = {};
  }
  connection_.Send(
      {.type = wire::kRefused, .sequence = sequence, .value = static_cast<int64_t>(why.code())},
      std::string(Message(why)));
}

// ---- the writer

bool Session::NextFrame(rpc::OutgoingFrame& frame) {
  return NextValues(frame) || NextCopy(frame);
}

bool Session::NextValues(rpc::OutgoingFrame& frame) {
  std::shared_ptr<Store> store;
  size_t total = 0;
  {
    MutexLock lock(mutex_);
    if (reply_.store == nullptr || (reply_.shards.empty() && !reply_.last)) return false;
    store = reply_.store;
    batch_.clear();
    while (!reply_.shards.empty() && (batch_.empty() || total < rpc::kFrameTargetBytes)) {
      batch_.push_back(reply_.shards.front());
      total += store->bytes_of(reply_.shards.front());
      reply_.shards.pop_front();
    }
    frame.header = {.type = wire::kValues, .sequence = reply_.sequence};
    if (reply_.shards.empty() && reply_.last) {
      frame.header = reply_.final;
      reply_ = {};
    }
  }
  if (batch_.empty()) return true;
  rpc::BufferPool::Lease* lease = buffers_->Take(total);
  lease->Share(static_cast<int>(batch_.size()));
  std::byte* to = lease->data();
  for (int shard : batch_) {
    const size_t bytes = store->bytes_of(shard);
    store->CopyValue(shard, to);
    frame.segments.push_back({.index = static_cast<uint32_t>(shard),
                              .bytes = {to, bytes},
                              .release = rpc::BufferPool::Lease::Release,
                              .argument = lease});
    to += bytes;
  }
  return true;
}

}  // namespace tfjob::ps
