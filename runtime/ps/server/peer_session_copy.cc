// Implements how a session sends a copy of the state to the chief.
#include <utility>

#include "runtime/ps/server/peer_session.h"
#include "runtime/ps/server/service.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {

void PeerSession::BeginCopy(uint64_t sequence) {
  service_.OnCopyBegins(*this);
  StatusOr<std::shared_ptr<Store>> store = service_.ReadyStore();
  if (!store.ok()) return ReplyTo(sequence, store.status());
  {
    MutexLock lock(mutex_);
    copy_request_ = {*std::move(store), sequence};
  }
  connection_.Wake();
}

bool PeerSession::NextCopiedShard() {
  Store& store = *copy_.of.store;
  if (copy_.next == store.shards().size()) return false;
  const int shard = store.shards()[copy_.next++];
  const auto parts = static_cast<size_t>(1 + store.slots_of(shard));
  copy_.state.reset(buffers_->Take(store.bytes_of(shard) * parts));
  copy_.part = copy_.offset = 0;
  // Copies the whole shard at once, although it is sent in pieces, because value, slots and ledger
  // must be copied at the same moment.
  store.CopyState(shard, copy_.state->data(), copy_.ledger);
  return true;
}

bool PeerSession::NextCopy(rpc::OutgoingFrame& frame) {
  {
    MutexLock lock(mutex_);
    if (copy_request_.store != nullptr) {
      copy_ = {};
      copy_.of = std::exchange(copy_request_, {});
    }
  }
  if (copy_.of.store == nullptr) return false;
  const Store& store = *copy_.of.store;
  frame.header = {.type = wire::kShard, .sequence = copy_.of.sequence, .value = store.epoch()};
  if (copy_.state != nullptr || NextCopiedShard()) {
    AppendCopy(frame);
    return true;
  }
  // The text is a member because the frame refers to its bytes until the frame is written.
  text_ = std::move(copy_.ledger);
  // The job's steps are counted by ps 0, so its counter is the one to restore.
  if (service_.index() == 0) text_ += copy_.of.store->CounterLedger();
  frame.header.type = wire::kSnapshotEnd;
  frame.header.step = copy_.of.store->step();
  frame.segments.push_back({.bytes = std::as_bytes(std::span(text_))});
  copy_ = {};
  return true;
}

void PeerSession::AppendCopy(rpc::OutgoingFrame& frame) {
  const Store& store = *copy_.of.store;
  const int shard = store.shards()[copy_.next - 1];
  const size_t bytes = store.bytes_of(shard);
  const auto parts = static_cast<size_t>(1 + store.slots_of(shard));
  for (size_t total = 0; copy_.part < parts && total < rpc::kFrameTargetBytes;) {
    const size_t count = std::min(bytes - copy_.offset, rpc::kFrameTargetBytes);
    frame.segments.push_back(
        {.index = static_cast<uint32_t>(shard),
         .flags = static_cast<uint32_t>(copy_.part),
         .offset = copy_.offset,
         .bytes =
             copy_.state->bytes(bytes * parts).subspan(copy_.part * bytes + copy_.offset, count),
         .release = rpc::BufferPool::Lease::Release,
         .argument = copy_.state->Hold()});
    total += count;
    copy_.offset += count;
    if (copy_.offset < bytes) continue;
    copy_.offset = 0;
    ++copy_.part;
  }
  if (copy_.part == parts) copy_.state = nullptr;
}

}  // namespace tfjob::ps
