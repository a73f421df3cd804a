// Implements how a link fills a server with state and copies the state from it.
#include <algorithm>

#include "runtime/ps/client/link.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/frame.h"

namespace tfjob::ps {
namespace {

std::span<const std::byte> PartOf(const state::VariableState& state, const Shard& shard,
                                  size_t slot) {
  const Tensor& tensor = slot == 0 ? state.value : state.slots[slot - 1];
  return tensor.bytes().subspan(static_cast<size_t>(shard.offset), static_cast<size_t>(shard.size));
}

Status CheckFitsAFrame(const std::string& text, const std::string& what) {
  constexpr size_t kMost = rpc::kMaxFrameBytes - rpc::kHeaderBytes - rpc::kSegmentBytes;
  if (text.size() <= kMost) return OkStatus();
  return InvalidArgument(what, " takes ", text.size(), " bytes, but at most ", kMost,
                         " can be sent: use fewer variables or larger shards (shard_bytes)");
}

}  // namespace

// ---- filling

Status Link::Fill(const state::Snapshot& snapshot, int64_t epoch) {
  std::string assignment =
      Serialize(Assignment{context_.options.definition, context_.options.servers});
  RETURN_IF_ERROR(CheckFitsAFrame(assignment, StrCat(name_, ": the definition of the variables")));
  // Only this server's lines are sent, because the lines of all servers together may exceed
  // a frame.
  std::string ledger = LedgerOf(snapshot.ledger, context_.shards, server_);
  RETURN_IF_ERROR(CheckFitsAFrame(ledger, StrCat(name_, ": its part of the ledger")));
  RETURN_IF_ERROR(Request({.type = wire::kDefine, .value = epoch}, std::move(assignment),
                          context_.options.stall_after)
                      .status());
  uint64_t number = 0;
  {
    MutexLock lock(context_.mutex);
    if (live_ == nullptr) return Unavailable(name_, ": not connected");
    number = next_request_++;
    pending_ = {.number = number};
    fill_ = {.snapshot = &snapshot, .request = number, .epoch = epoch, .ledger = std::move(ledger)};
    moved_ = 0;
    to_move_ = StateBytes(snapshot);
    live_->Wake();
  }
  StatusOr<Answer> answer = AwaitTransfer(number);
  // The connection may still be reading the caller's snapshot; closing it stops that.
  if (!answer.ok()) Disconnect();
  return answer.status();
}

bool Link::NextFill(rpc::OutgoingFrame& frame) {
  if (fill_.snapshot == nullptr || fill_.ended) return false;
  if (fill_.shard == shards_.size()) {
    fill_.ended = true;
    text_ = std::move(fill_.ledger);
    frame.header = {.type = wire::kFilled,
                    .sequence = fill_.request,
                    .step = fill_.snapshot->global_step,
                    .value = fill_.epoch};
    frame.segments.push_back({.bytes = std::as_bytes(std::span(text_))});
    return true;
  }
  frame.header = {.type = wire::kFill, .value = fill_.epoch};
  size_t total = 0;
  while (fill_.shard < shards_.size() && total < rpc::kFrameTargetBytes &&
         frame.segments.size() < rpc::kFrameTargetSegments) {
    total += AppendFill(frame);
  }
  moved_ += total;
  return true;
}

size_t Link::AppendFill(rpc::OutgoingFrame& frame) {
  const int index = shards_[fill_.shard];
  const Shard& shard = context_.shards[static_cast<size_t>(index)];
  const state::VariableState& state =
      fill_.snapshot->variables[static_cast<size_t>(shard.variable)];
  const std::span<const std::byte> part = PartOf(state, shard, fill_.slot);
  const size_t bytes = std::min(part.size() - fill_.offset, rpc::kFrameTargetBytes);
  Lend();
  frame.segments.push_back({.index = static_cast<uint32_t>(index),
                            .flags = static_cast<uint32_t>(fill_.slot),
                            .offset = fill_.offset,
                            .bytes = part.subspan(fill_.offset, bytes),
                            .release = Released,
                            .argument = this});
  fill_.offset += bytes;
  if (fill_.offset < part.size()) return bytes;
  fill_.offset = 0;
  if (++fill_.slot <= state.slots.size()) return bytes;
  fill_.slot = 0;
  ++fill_.shard;
  return bytes;
}

// ---- waiting

uint64_t Link::StateBytes(const state::Snapshot& snapshot) const {
  uint64_t bytes = 0;
  for (int index : shards_) {
    const Shard& shard = context_.shards[static_cast<size_t>(index)];
    const state::VariableState& state = snapshot.variables[static_cast<size_t>(shard.variable)];
    bytes += static_cast<uint64_t>(shard.size) * (1 + state.slots.size());
  }
  return bytes;
}

StatusOr<Link::Answer> Link::AwaitTransfer(uint64_t number) {
  const Duration stall = context_.options.stall_after;
  auto deadline = SteadyNow() + stall;
  MutexLock lock(context_.mutex);
  uint64_t seen = moved_;
  while (!(pending_.number == number && pending_.done)) {
    if (!up_) return Unavailable(name_, ": ", Message(why_));
    if (context_.interrupted) return Cancelled(name_, ": the transfer was ended");
    if (context_.changed.WaitUntil(context_.mutex, deadline) || SteadyNow() < deadline) continue;
    if (moved_ == seen && !(pending_.number == number && pending_.done)) {
      return DeadlineExceeded(name_, ": no byte of its state moved for ", FormatDuration(stall),
                              ", after ", moved_, " of ", to_move_);
    }
    seen = moved_;
    deadline = SteadyNow() + stall;
  }
  if (!pending_.status.ok()) return Annotate(pending_.status, name_);
  return std::move(pending_.answer);
}

std::string Link::DescribeTransfer() {
  constexpr uint64_t kMegabyte = 1'000'000;
  MutexLock lock(context_.mutex);
  return StrCat(moved_ / kMegabyte, " of ", to_move_ / kMegabyte, " MB");
}

// ---- copying

Status Link::BeginCopy(state::Snapshot& snapshot) {
  MutexLock lock(context_.mutex);
  if (live_ == nullptr) return Unavailable(name_, ": not connected");
  copy_ = &snapshot;
  moved_ = 0;
  to_move_ = StateBytes(snapshot);
  copy_request_ = next_request_++;
  pending_ = {.number = copy_request_};
  live_->Send({.type = wire::kSnapshot, .sequence = copy_request_});
  return OkStatus();
}

StatusOr<Link::Answer> Link::AwaitCopy() {
  uint64_t number = 0;
  {
    MutexLock lock(context_.mutex);
    number = copy_request_;
  }
  StatusOr<Answer> answer = AwaitTransfer(number);
  if (!answer.ok()) {
    // The reader may still be writing into the caller's snapshot; closing the connection
    // stops that.
    Disconnect();
    return answer.status();
  }
  MutexLock lock(context_.mutex);
  copy_ = nullptr;
  return answer;
}

StatusOr<const Shard*> Link::ShardOf(const rpc::SegmentInfo& segment) const {
  const Shard* shard =
      segment.index < context_.shards.size() ? &context_.shards[segment.index] : nullptr;
  if (shard == nullptr || shard->server != server_) {
    return DataLoss(name_, ": bytes of shard ", segment.index, ", which it does not hold");
  }
  const auto size = static_cast<uint64_t>(shard->size);
  if (segment.length > size || segment.offset > size - segment.length) {
    return DataLoss(name_, ": shard ", segment.index, " has no bytes ", segment.offset, " to ",
                    segment.offset + segment.length);
  }
  return shard;
}

void Link::OnCopy(rpc::IncomingFrame& frame) {
  state::Snapshot* snapshot = nullptr;
  {
    MutexLock lock(context_.mutex);
    if (copy_request_ == frame.header.sequence) snapshot = copy_;
    if (snapshot != nullptr && frame.header.type == wire::kShard) moved_ += frame.remaining();
  }
  if (snapshot == nullptr) return;
  if (frame.header.type == wire::kSnapshotEnd) return EndCopy(frame, *snapshot);
  for (const rpc::SegmentInfo& segment : frame.segments) {
    StatusOr<const Shard*> shard = ShardOf(segment);
    if (!shard.ok()) return connection_->Cancel(shard.status());
    state::VariableState& state = snapshot->variables[static_cast<size_t>((*shard)->variable)];
    if (segment.flags > state.slots.size()) {
      return connection_->Cancel(
          DataLoss(name_, ": shard ", segment.index, " has no slot ", segment.flags));
    }
    Tensor& tensor = segment.flags == 0 ? state.value : state.slots[segment.flags - 1];
    const size_t begin = static_cast<size_t>((*shard)->offset) + segment.offset;
    // If this fails, the stream is broken, and the reader ends.
    if (!frame.Receive(tensor.bytes().subspan(begin, segment.length)).ok()) return;
  }
}

void Link::EndCopy(rpc::IncomingFrame& frame, const state::Snapshot& snapshot) {
  const uint64_t expected = StateBytes(snapshot);
  uint64_t copied = 0;
  {
    MutexLock lock(context_.mutex);
    copied = moved_;
  }
  Status status;
  // Shard frames are not numbered, so only the sum of their sizes shows whether one is missing.
  if (copied != expected) {
    status = DataLoss("a copy of ", copied, " bytes, expected ", expected);
  }
  Settle(frame.header, status, frame.ReadString(frame.remaining()));
}

}  // namespace tfjob::ps
