// Implements how a session receives the updates of a contribution, shard by shard.
#include <utility>

#include "runtime/ps/limits.h"
#include "runtime/ps/server/peer_session.h"
#include "runtime/ps/server/service.h"
#include "runtime/ps/server/staging.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {

Status PeerSession::TakeSegment(rpc::IncomingFrame& frame, const rpc::SegmentInfo& segment) {
  if (segment.index == wire::kDrawn) {
    if (segment.length > 0 || segment.offset > static_cast<uint64_t>(kMostDrawn)) {
      return InvalidArgument("position: expected up to ", kMostDrawn, " batches");
    }
    push_.drawn = static_cast<int64_t>(segment.offset);
    return OkStatus();
  }
  if (push_.shard < 0) {
    RETURN_IF_ERROR(BeginShard(segment));
  } else if (static_cast<int64_t>(segment.index) != push_.shard || segment.length == 0) {
    // Only a shard's first segment may be empty.
    return InvalidArgument("shard ", segment.index, ": expected more bytes of shard ", push_.shard);
  }
  if (segment.length > 0) {
    if (segment.offset != push_.received || segment.length > push_.expected - push_.received) {
      return InvalidArgument("shard ", push_.shard, ": expected bytes from ", push_.received,
                             " to ", push_.expected, ", got ", segment.length, " from ",
                             segment.offset);
    }
    push_.received += segment.length;
    RETURN_IF_ERROR(TakeBytes(frame, segment));
  }
  return push_.received == push_.expected ? EndShard() : OkStatus();
}

Status PeerSession::BeginShard(const rpc::SegmentInfo& segment) {
  Store& store = *push_.store;
  if (!store.Owns(segment.index) || push_.remaining == 0)
    return InvalidArgument("shard ", segment.index, " is not expected in this contribution now");
  push_.shard = static_cast<int>(segment.index);
  push_.received = push_.expected = 0;
  push_.rows = -1;
  if (const ShardRows* rows = store.rows_of(push_.shard); rows != nullptr)
    return BeginRows(*rows, segment);
  if (segment.flags == wire::kRowCount)
    return InvalidArgument("shard ", push_.shard, ": its gradient does not arrive as rows");
  // An empty segment means that the contribution has no update for this shard.
  if (segment.length == 0) return OkStatus();
  push_.expected = store.bytes_of(push_.shard);
  if (push_.staging == nullptr && !push_.synchronous)
    push_.update.reset(buffers_->Take(push_.expected));
  return OkStatus();
}

Status PeerSession::BeginRows(const ShardRows& rows, const rpc::SegmentInfo& segment) {
  if (segment.length > 0)
    return InvalidArgument("shard ", push_.shard, ": expected the number of its rows first");
  if (segment.flags != wire::kRowCount) return OkStatus();  // no update
  if (segment.offset > static_cast<uint64_t>(rows.count)) {
    return InvalidArgument("shard ", push_.shard, ": expected up to ", rows.count, " rows, got ",
                           segment.offset);
  }
  push_.rows = static_cast<int64_t>(segment.offset);
  push_.expected = rows.UpdateBytes(push_.rows);
  if (push_.staging != nullptr) {
    push_.staging->BeginRows(push_.shard, push_.rows);
  } else if (!push_.synchronous) {
    push_.update.reset(buffers_->Take(push_.expected));
  }
  return OkStatus();
}

Status PeerSession::TakeBytes(rpc::IncomingFrame& frame, const rpc::SegmentInfo& segment) {
  if (push_.staging != nullptr) {
    return push_.staging->Take(frame, push_.shard, segment.offset, segment.length);
  }
  // This contribution is not needed. Do not read its bytes; the connection skips them.
  if (push_.synchronous) return OkStatus();
  return frame.Receive(push_.update->bytes(push_.expected).subspan(segment.offset, segment.length));
}

Status PeerSession::EndShard() {
  Store& store = *push_.store;
  const int shard = std::exchange(push_.shard, -1);
  --push_.remaining;
  if (push_.staging != nullptr) {
    return push_.rows < 0 ? OkStatus() : push_.staging->CheckRows(shard);
  }
  if (push_.synchronous) return OkStatus();
  // Apply the gradient only now that it is complete, so that a task that dies while sending it has
  // no effect on the values.
  RETURN_IF_ERROR(ApplyNow(store, shard));
  push_.update = nullptr;
  if (store.table_rows_of(shard) != nullptr) return OkStatus();
  MutexLock lock(mutex_);
  // Send the new value now, while further shards are still arriving.
  reply_.Add({.shard = shard, .bytes = store.bytes_of(shard)});
  return OkStatus();
}

Status PeerSession::ApplyNow(Store& store, int shard) {
  std::span<const std::byte> update;
  if (push_.update != nullptr) update = push_.update->bytes(push_.expected);
  if (push_.rows < 0) {
    store.Apply(shard, push_.name, update, store.step(), stream_);
    return OkStatus();
  }
  RETURN_IF_ERROR(
      CheckRows(*store.rows_of(shard), RowUpdate<const std::byte>::Of(update, push_.rows).indices));
  store.ApplyRows(shard, push_.name, update, push_.rows, store.step(), stream_);
  return OkStatus();
}

}  // namespace tfjob::ps
