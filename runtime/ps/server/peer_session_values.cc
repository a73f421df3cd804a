// Implements how a session answers exchanges: with values, which are sent in pieces as soon as they
// are ready, or with a refusal.
#include <algorithm>
#include <utility>

#include "runtime/ps/limits.h"
#include "runtime/ps/server/peer_session.h"
#include "runtime/ps/server/service.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {

void PeerSession::Reply::Begin(std::shared_ptr<Store> of, uint64_t number) {
  store = std::move(of);
  sequence = number;
  parts.clear();  // keeps the allocation for reuse
  sent = offset = bytes = 0;
  last = false;
}

void PeerSession::Reply::Add(ReplyPart part) {
  bytes += part.bytes;
  parts.push_back(std::move(part));
}

// Sends the values that are ready. If they are small and `from_here` is set, the calling thread
// writes them, because waking the writer would cost more.
void PeerSession::SendValues(bool from_here) {
  bool few = false;
  {
    MutexLock lock(mutex_);
    if (reply_.bytes == 0 && !reply_.last) return;
    few = reply_.bytes <= kFlushBytes;
  }
  if (few && from_here) return connection_.Flush();
  connection_.Wake();
}

void PeerSession::Answer(uint64_t sequence, int64_t step, uint16_t flags, int64_t value,
                         bool with_values) {
  {
    MutexLock lock(mutex_);
    // Ignore the answer if the exchange was refused, or if the peer has started another exchange in
    // the meantime.
    if (reply_.sequence != sequence || reply_.store == nullptr) return;
    if (with_values) {
      reply_.parts.clear();
      reply_.sent = reply_.offset = reply_.bytes = 0;
      for (int shard : reply_.store->whole_shards())
        reply_.Add({.shard = shard, .bytes = reply_.store->bytes_of(shard)});
    }
    reply_.final = {.type = wire::kValues,
                    .flags = static_cast<uint16_t>(flags | wire::kLast),
                    .sequence = sequence,
                    .step = step,
                    .value = value};
    reply_.last = true;
  }
  connection_.Wake();
}

void PeerSession::Refuse(uint64_t sequence, const Status& why) {
  {
    MutexLock lock(mutex_);
    // Ignore the refusal if the exchange is no longer current. Otherwise, drop the unsent values,
    // because no values may follow the refusal.
    if (reply_.sequence != sequence) return;
    reply_.Begin(nullptr, 0);
  }
  SendRefusal(sequence, why);
}

void PeerSession::SendRefusal(uint64_t sequence, const Status& why) {
  service_.refusals().Note(peer_, address_, why);
  connection_.Send(
      {.type = wire::kRefused, .sequence = sequence, .value = static_cast<int64_t>(why.code())},
      std::string(Message(why)));
}

// ---- outgoing frames

// Takes the next piece of the answer.
PeerSession::Chunk PeerSession::NextChunk() {
  const ReplyPart& part = reply_.parts[reply_.sent];
  const size_t left = part.bytes - reply_.offset;
  Chunk chunk{.shard = part.shard,
              .offset = reply_.offset,
              .bytes = std::min(left, rpc::kFrameTargetBytes)};
  if (part.rows != nullptr) {
    const size_t row = part.bytes / static_cast<size_t>(part.count);
    chunk.rows = std::clamp<size_t>(rpc::kFrameTargetBytes / row, 1, left / row);
    chunk.bytes = chunk.rows * row;
    chunk.first_row = reply_.offset / row;
    // Hold the lease on the indices, because a refusal may drop the part while its rows are being
    // copied.
    chunk.indices.reset(part.rows->Hold());
  }
  reply_.offset += chunk.bytes;
  if (chunk.bytes == left) {
    ++reply_.sent;
    reply_.offset = 0;
  }
  return chunk;
}

// Sets the header and lists the contents of the frame in chunks_. Returns the number of bytes.
size_t PeerSession::PlanValues(rpc::OutgoingFrame& frame) {
  size_t total = 0;
  chunks_.clear();
  while (reply_.sent < reply_.parts.size() && total < rpc::kFrameTargetBytes &&
         chunks_.size() < rpc::kFrameTargetSegments) {
    chunks_.push_back(NextChunk());
    total += chunks_.back().bytes;
  }
  reply_.bytes -= total;
  frame.header = {.type = wire::kValues, .sequence = reply_.sequence};
  if (reply_.sent == reply_.parts.size() && reply_.last) {
    // The exchange is complete, so a later Answer has no effect.
    frame.header = reply_.final;
    reply_.Begin(nullptr, 0);
  }
  return total;
}

bool PeerSession::NextValues(rpc::OutgoingFrame& frame) {
  std::shared_ptr<Store> store;
  size_t total = 0;
  {
    MutexLock lock(mutex_);
    if (reply_.store == nullptr) return false;
    if (reply_.sent == reply_.parts.size() && !reply_.last) return false;
    store = reply_.store;
    total = PlanValues(frame);
  }
  // Copy the values without the session's lock, because the copy needs the shard's lock and may
  // take a long time.
  if (chunks_.empty()) return true;
  rpc::OwnedLease lease(buffers_->Take(total));
  std::span<std::byte> to = lease->bytes(total);
  for (const Chunk& chunk : chunks_) {
    CopyChunk(*store, chunk, to.first(chunk.bytes));
    frame.segments.push_back({.index = static_cast<uint32_t>(chunk.shard),
                              .offset = chunk.offset,
                              .bytes = to.first(chunk.bytes),
                              .release = rpc::BufferPool::Lease::Release,
                              .argument = lease->Hold()});
    to = to.subspan(chunk.bytes);
  }
  chunks_.clear();
  return true;
}

void PeerSession::CopyChunk(Store& store, const Chunk& chunk, std::span<std::byte> to) {
  if (chunk.indices == nullptr) return store.CopyValue(chunk.shard, chunk.offset, to);
  const auto* indices = reinterpret_cast<const int64_t*>(chunk.indices->data());
  store.CopyRows(chunk.shard, {indices + chunk.first_row, chunk.rows}, to);
}

}  // namespace tfjob::ps
