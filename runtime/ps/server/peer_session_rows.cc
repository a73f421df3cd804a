// Implements how a session receives the indices of the rows that a task reads.
#include <utility>

#include "runtime/ps/server/peer_session.h"
#include "runtime/ps/server/service.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {

void PeerSession::OnPullRows(rpc::IncomingFrame& frame) {
  const rpc::FrameHeader& header = frame.header;
  if ((header.flags & wire::kFirst) != 0) {
    wanted_ = {};
    if (!BeginExchange(header)) return;
    wanted_.store = std::move(push_.store);
    wanted_.sequence = header.sequence;
    push_ = {};
  }
  // Skip the remaining frames of a request that was already refused.
  if (wanted_.store == nullptr || header.sequence != wanted_.sequence) return;
  Status status;
  for (const rpc::SegmentInfo& segment : frame.segments) {
    if (status.ok()) status = TakeRowNumbers(frame, segment);
  }
  const bool last = (header.flags & wire::kLast) != 0;
  if (status.ok() && last) status = EndPullRows();
  if (!status.ok()) {
    wanted_ = {};
    return Refuse(header.sequence, status);
  }
  SendValues(last);
}

Status PeerSession::TakeRowNumbers(rpc::IncomingFrame& frame, const rpc::SegmentInfo& segment) {
  if (wanted_.shard < 0) return BeginRowNumbers(segment);
  const size_t expected = static_cast<size_t>(wanted_.count) * sizeof(int64_t);
  if (static_cast<int64_t>(segment.index) != wanted_.shard || segment.length == 0 ||
      segment.offset != wanted_.received || segment.length > expected - wanted_.received) {
    return InvalidArgument("shard ", segment.index, ": expected the numbers of ", wanted_.count,
                           " rows of shard ", wanted_.shard, " from byte ", wanted_.received);
  }
  frame.Read(wanted_.indices->bytes(expected).subspan(segment.offset, segment.length));
  wanted_.received += segment.length;
  return wanted_.received == expected ? EndRowNumbers() : OkStatus();
}

Status PeerSession::BeginRowNumbers(const rpc::SegmentInfo& segment) {
  const Store& store = *wanted_.store;
  // Each shard may occur only once, so that a request has at most as many row indices as the tables
  // have rows.
  if (!store.Owns(segment.index) || static_cast<int>(segment.index) <= wanted_.last_shard)
    return InvalidArgument("shard ", segment.index, " is not expected in this request now");
  const auto shard = static_cast<int>(segment.index);
  const ShardRows* rows = store.table_rows_of(shard);
  if (rows == nullptr) return InvalidArgument("shard ", shard, " is of no table");
  if (segment.length > 0 || segment.flags != wire::kRowCount)
    return InvalidArgument("shard ", shard, ": expected how many rows are wanted first");
  if (segment.offset == 0 || segment.offset > static_cast<uint64_t>(rows->count)) {
    return InvalidArgument("shard ", shard, ": expected 1 to ", rows->count, " rows, got ",
                           segment.offset);
  }
  wanted_.shard = shard;
  wanted_.count = static_cast<int64_t>(segment.offset);
  wanted_.received = 0;
  wanted_.indices.reset(buffers_->Take(segment.offset * sizeof(int64_t)));
  return OkStatus();
}

Status PeerSession::EndRowNumbers() {
  const ShardRows& rows = *wanted_.store->table_rows_of(wanted_.shard);
  const auto* indices = reinterpret_cast<const int64_t*>(wanted_.indices->data());
  RETURN_IF_ERROR(CheckRows(rows, {indices, static_cast<size_t>(wanted_.count)}));
  wanted_.last_shard = std::exchange(wanted_.shard, -1);
  MutexLock lock(mutex_);
  reply_.Add({.shard = wanted_.last_shard,
              .bytes = static_cast<size_t>(wanted_.count * rows.bytes),
              .rows = std::move(wanted_.indices),
              .count = wanted_.count});
  return OkStatus();
}

Status PeerSession::EndPullRows() {
  if (wanted_.shard >= 0)
    return InvalidArgument("shard ", wanted_.shard, ": the numbers of its rows are incomplete");
  const std::shared_ptr<Store> store = std::exchange(wanted_.store, nullptr);
  MutexLock lock(mutex_);
  if (reply_.sequence != wanted_.sequence) return OkStatus();
  reply_.final = {.type = wire::kValues,
                  .flags = wire::kLast,
                  .sequence = wanted_.sequence,
                  .step = store->step()};
  reply_.last = true;
  return OkStatus();
}

}  // namespace tfjob::ps
