// Implements how a link fills a server with state, copies state from the server, and reads the
// tables of a copy.
#include <algorithm>
#include <utility>

#include "runtime/ps/client/link.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/rate_record.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

std::span<const std::byte> PartOf(const state::VariableState& state, const Shard& shard,
                                  size_t slot) {
  const Tensor& tensor = slot == 0 ? state.value : state.slots[slot - 1];
  return tensor.bytes().subspan(static_cast<size_t>(shard.offset), static_cast<size_t>(shard.size));
}

}  // namespace

// ---- filling

Status Link::Fill(const state::Snapshot& snapshot, int64_t epoch) {
  std::string assignment =
      Serialize(Assignment{context_.options.definition, context_.options.servers});
  RETURN_IF_ERROR(
      CheckFitsAFrame(assignment.size(), StrCat(name_, ": the definition of the variables")));
  // Send only this server's lines, because the total size of all servers' lines may be too large
  // for a frame.
  std::string ledger = LedgerOf(snapshot.ledger, context_.shards, server_);
  const std::optional<state::LearningRate>& rate = snapshot.learning_rate;
  if (rate && state::CheckMaySet(rate->rate, context_.options.definition.state.optimizer).ok())
    ledger += RateRecord(*rate);
  RETURN_IF_ERROR(CheckFitsAFrame(ledger.size(), StrCat(name_, ": its part of the ledger")));
  RETURN_IF_ERROR(Request({.type = wire::kDefine, .value = epoch}, std::move(assignment),
                          context_.options.stall_after)
                      .status());
  uint64_t number = 0;
  {
    MutexLock lock(context_.mutex);
    if (live_ == nullptr) return Unavailable(name_, ": not connected");
    number = next_request_++;
    pending_ = {.number = number};
    sent_rate_.reset();
    fill_ = {.snapshot = &snapshot, .request = number, .epoch = epoch, .ledger = std::move(ledger)};
    moved_ = 0;
    to_move_ = BytesToFill(snapshot);
    live_->Wake();
  }
  Status status = AwaitTransfer(number).status();
  if (status.ok() && !IsFillSent()) {
    status = DataLoss(name_, ": it confirmed the state before all of it was sent");
  }
  // Close the connection, which may still be reading the caller's snapshot.
  if (!status.ok()) Disconnect();
  MutexLock lock(context_.mutex);
  fill_ = {};
  return status;
}

// Returns whether the writer has sent all bytes, so that it no longer reads the caller's snapshot.
bool Link::IsFillSent() {
  {
    MutexLock lock(context_.mutex);
    if (!fill_.ended) return false;
  }
  return !Lent();
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
    if (!HasBytesToFill()) {
      fill_.wanted = true;
      context_.changed.NotifyAll();
      break;
    }
    total += AppendFill(frame);
  }
  moved_ += total;
  return !frame.segments.empty();
}

bool Link::HasBytesToFill() {
  const Shard& shard = context_.shards[static_cast<size_t>(shards_[fill_.shard])];
  if (fill_.snapshot->variables[static_cast<size_t>(shard.variable)].streamed.empty()) return true;
  return fill_.piece_begin <= fill_.offset && fill_.offset < fill_.piece_end;
}

Status Link::ReadPieceToFill() {
  fill_.wanted = false;
  // Ignore an outdated request: the writer may have repeated its request while the previous piece
  // was being read. If the writer still has bytes, it may move to another slot during the read, so
  // do not replace these bytes. A writer without bytes stays at its slot.
  if (fill_.shard == shards_.size() || HasBytesToFill()) return OkStatus();
  const Shard& shard = context_.shards[static_cast<size_t>(shards_[fill_.shard])];
  const state::StreamedValue& value =
      *fill_.snapshot->variables[static_cast<size_t>(shard.variable)].streamed[fill_.slot];
  const size_t begin = fill_.offset;
  const size_t bytes = std::min(static_cast<size_t>(shard.size) - begin, state::kPieceBytes);
  context_.mutex.Unlock();
  // The connection may still be reading the previous piece, so this piece gets its own memory.
  rpc::OwnedLease piece(fill_buffers_->Take(bytes));
  const Status status = value.Read(shard.offset + static_cast<int64_t>(begin), piece->bytes(bytes));
  context_.mutex.Lock();
  RETURN_IF_ERROR(status);
  fill_.piece = std::move(piece);
  fill_.piece_begin = begin;
  fill_.piece_end = begin + bytes;
  if (live_ != nullptr) live_->Wake();
  return OkStatus();
}

size_t Link::AppendFill(rpc::OutgoingFrame& frame) {
  const int index = shards_[fill_.shard];
  const Shard& shard = context_.shards[static_cast<size_t>(index)];
  const state::VariableState& state =
      fill_.snapshot->variables[static_cast<size_t>(shard.variable)];
  const bool streamed = !state.streamed.empty();
  const auto size = static_cast<size_t>(shard.size);
  rpc::Segment segment{.index = static_cast<uint32_t>(index),
                       .flags = static_cast<uint32_t>(fill_.slot),
                       .offset = fill_.offset,
                       .bytes = {}};
  if (streamed) {
    segment.bytes = fill_.piece->bytes(fill_.piece_end - fill_.piece_begin)
                        .subspan(fill_.offset - fill_.piece_begin);
    segment.release = rpc::BufferPool::Lease::Release;
    segment.argument = fill_.piece->Hold();
  } else {
    segment.bytes =
        PartOf(state, shard, fill_.slot)
            .subspan(fill_.offset, std::min(size - fill_.offset, rpc::kFrameTargetBytes));
    Lend();
    segment.release = Released;
    segment.argument = this;
  }
  const size_t bytes = segment.bytes.size();
  frame.segments.push_back(segment);
  fill_.offset += bytes;
  if (fill_.offset < size) return bytes;
  fill_.offset = fill_.piece_begin = fill_.piece_end = 0;
  if (++fill_.slot < state.parts()) return bytes;
  fill_.slot = 0;
  ++fill_.shard;
  return bytes;
}

// ---- waiting

uint64_t Link::BytesToFill(const state::Snapshot& snapshot) const {
  uint64_t bytes = 0;
  for (int index : shards_) {
    const Shard& shard = context_.shards[static_cast<size_t>(index)];
    const state::VariableState& state = snapshot.variables[static_cast<size_t>(shard.variable)];
    bytes += static_cast<uint64_t>(shard.size) * state.parts();
  }
  return bytes;
}

uint64_t Link::BytesToCopy() const {
  const Definition& definition = context_.options.definition;
  uint64_t bytes = 0;
  for (int index : shards_) {
    const Shard& shard = context_.shards[static_cast<size_t>(index)];
    if (IsTable(definition, shard.variable)) continue;
    const state::Variable& variable =
        definition.state.variables[static_cast<size_t>(shard.variable)];
    const size_t slots = state::SlotsOf(variable, definition.state.optimizer).size();
    bytes += static_cast<uint64_t>(shard.size) * (1 + slots);
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
    if (fill_.wanted) {
      RETURN_IF_ERROR(ReadPieceToFill());
      deadline = SteadyNow() + stall;  // do not count the time that the read took
      continue;
    }
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

StatusOr<uint64_t> Link::BeginCopy(state::Snapshot& snapshot) {
  MutexLock lock(context_.mutex);
  if (live_ == nullptr) return Unavailable(name_, ": not connected");
  copy_ = &snapshot;
  moved_ = 0;
  to_move_ = BytesToCopy();
  copy_request_ = next_request_++;
  pending_ = {.number = copy_request_};
  live_->Send({.type = wire::kSnapshot, .sequence = copy_request_});
  return copy_request_;
}

StatusOr<Link::Answer> Link::AwaitCopy() {
  uint64_t number = 0;
  {
    MutexLock lock(context_.mutex);
    number = copy_request_;
  }
  StatusOr<Answer> answer = AwaitTransfer(number);
  if (answer.ok() && answer->header.type != wire::kSnapshotEnd) {
    answer = DataLoss(name_, ": expected the end of its copy, got a frame of type ",
                      answer->header.type);
  }
  // Close the connection, because the reader may still be writing into the caller's snapshot.
  if (!answer.ok()) Disconnect();
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
  if (frame.header.type == wire::kSnapshotEnd) return EndCopy(frame);
  for (const rpc::SegmentInfo& segment : frame.segments) {
    StatusOr<const Shard*> shard = ShardOf(segment);
    if (!shard.ok()) return connection_->Cancel(shard.status());
    if (IsTable(context_.options.definition, (*shard)->variable)) {
      return connection_->Cancel(DataLoss(name_, ": bytes of shard ", segment.index,
                                          " of a table, which were not asked for"));
    }
    state::VariableState& state = snapshot->variables[static_cast<size_t>((*shard)->variable)];
    if (segment.flags > state.slots.size()) {
      return connection_->Cancel(
          DataLoss(name_, ": shard ", segment.index, " has no slot ", segment.flags));
    }
    Tensor& tensor = segment.flags == 0 ? state.value : state.slots[segment.flags - 1];
    const size_t begin = static_cast<size_t>((*shard)->offset) + segment.offset;
    // If Receive fails, the stream is broken, and the reader stops.
    if (!frame.Receive(tensor.bytes().subspan(begin, segment.length)).ok()) return;
  }
}

void Link::EndCopy(rpc::IncomingFrame& frame) {
  const uint64_t expected = BytesToCopy();
  uint64_t copied = 0;
  {
    MutexLock lock(context_.mutex);
    copied = moved_;
  }
  Status status;
  // Shard frames are not numbered, so a missing frame can only be detected from the sum of their
  // sizes.
  if (copied != expected) {
    status = DataLoss("a copy of ", copied, " bytes, expected ", expected);
  }
  if (status.ok()) status = CheckStep(frame.header.step);
  Settle(frame.header, status, frame.ReadString(frame.remaining()));
}

// ---- reading tables that the server keeps

Status Link::ReadCopy(uint64_t copy, const wire::CopyPiece& piece, std::span<std::byte> to) {
  MutexLock only(piece_mutex_);
  const auto deadline = SteadyNow() + context_.options.stall_after;
  MutexLock lock(context_.mutex);
  if (live_ == nullptr) return Unavailable(name_, ": not connected");
  const uint64_t number = next_request_++;
  piece_read_ = {.number = number, .piece = piece, .to = to, .status = {}};
  live_->Send({.type = wire::kReadCopy, .sequence = number, .value = static_cast<int64_t>(copy)},
              std::string(reinterpret_cast<const char*>(&piece), sizeof(piece)));
  bool in_time = true;
  while (!piece_read_.done && !context_.closing && in_time)
    in_time = context_.changed.WaitUntil(context_.mutex, deadline);
  // The caller may reuse `to` as soon as this function returns, so no reader may still write into
  // `to`. Only closing the stream stops a reader that is waiting for the rest of a frame.
  if (piece_read_.arriving && live_ != nullptr) {
    live_->Cancel(context_.closing ? Cancelled("disconnected")
                                   : Unavailable("the rest of a piece of a table did not arrive"));
  }
  while (piece_read_.arriving) context_.changed.Wait(context_.mutex);
  const PieceRead read = std::exchange(piece_read_, {});
  if (read.done) return read.status;
  if (context_.closing) return Unavailable(name_, ": the task ends");
  return DeadlineExceeded(name_, ": no piece of a table within ",
                          FormatDuration(context_.options.stall_after));
}

void Link::DropCopy(uint64_t copy) {
  MutexLock lock(context_.mutex);
  if (live_ != nullptr) {
    live_->Send({.type = wire::kDropCopy, .value = static_cast<int64_t>(copy)});
  }
}

void Link::OnCopied(rpc::IncomingFrame& frame) {
  std::span<std::byte> to;
  {
    MutexLock lock(context_.mutex);
    // Ignore a piece that is no longer awaited.
    if (piece_read_.number == 0 || piece_read_.number != frame.header.sequence || piece_read_.done)
      return;
    const wire::CopyPiece& piece = piece_read_.piece;
    const bool expected = frame.segments.size() == 1 && frame.segments[0].index == piece.shard &&
                          frame.segments[0].flags == piece.slot &&
                          frame.segments[0].offset == piece.offset &&
                          frame.segments[0].length == piece_read_.to.size();
    if (!expected) {
      return connection_->Cancel(DataLoss(name_, ": other bytes than those of shard ", piece.shard,
                                          " from byte ", piece.offset, ", which were asked for"));
    }
    to = piece_read_.to;
    piece_read_.arriving = true;
  }
  // Receive the bytes without the lock. `to` stays valid, because ReadCopy does not return during
  // this time.
  const Status status = frame.Receive(to);
  MutexLock lock(context_.mutex);
  piece_read_.arriving = false;
  // If the stream is broken, OnEnd completes the read with the error.
  if (status.ok()) EndPiece(piece_read_.number, OkStatus());
  context_.changed.NotifyAll();
}

void Link::EndPiece(uint64_t number, const Status& status) {
  if (number == 0 || piece_read_.number != number || piece_read_.done) return;
  piece_read_.done = true;
  piece_read_.status = status;
  context_.changed.NotifyAll();
}

}  // namespace tfjob::ps
