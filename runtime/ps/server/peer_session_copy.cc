// Implements how a session sends a copy of the state to the chief: tables piece by piece, at the
// chief's request, and all other variables at once.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/ps/limits.h"
#include "runtime/ps/server/peer_session.h"
#include "runtime/ps/server/service.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

// A chief needs at most three copies: one being saved, one to be saved next, and the last one. It
// requests one piece at a time.
constexpr size_t kMostKept = 8, kMostPieces = 64;

}  // namespace

void PeerSession::BeginCopy(uint64_t sequence) {
  service_.OnCopyBegins(*this);
  StatusOr<std::shared_ptr<Store>> store = service_.ReadyStore();
  if (!store.ok()) return ReplyTo(sequence, store.status());
  StatusOr<std::string> ledger = KeepTables(*store, sequence);
  if (!ledger.ok()) return ReplyTo(sequence, ledger.status());
  {
    MutexLock lock(mutex_);
    copy_request_ = {*std::move(store), sequence, *std::move(ledger)};
  }
  connection_.Wake();
}

StatusOr<std::string> PeerSession::KeepTables(const std::shared_ptr<Store>& store,
                                              uint64_t sequence) {
  std::string ledger;
  if (store->definition().tables.empty()) return ledger;
  {
    MutexLock lock(mutex_);
    if (kept_.contains(sequence)) return InvalidArgument("two copies have the number ", sequence);
    if (kept_.size() >= kMostKept) {
      return ResourceExhausted(kept_.size(), " copies of the tables are kept: drop one first");
    }
  }
  // Copy without the session's lock, because TableCopy acquires the locks of the shards. Only the
  // reader thread adds copies.
  auto copy = std::make_shared<const TableCopy>(store, ledger);
  {
    MutexLock lock(mutex_);
    kept_.emplace(sequence, std::move(copy));
  }
  service_.OnTablesKept(1);
  return ledger;
}

void PeerSession::DropCopy(uint64_t number) {
  std::shared_ptr<const TableCopy> dropped;  // freed after the lock is released
  {
    MutexLock lock(mutex_);
    const auto found = kept_.find(number);
    if (found == kept_.end()) return;
    dropped = std::move(found->second);
    kept_.erase(found);
  }
  dropped.reset();
  service_.OnTablesKept(-1);
}

void PeerSession::DropOldCopies() {
  std::vector<std::shared_ptr<const TableCopy>> dropped;  // freed after the lock is released
  {
    MutexLock lock(mutex_);
    if (kept_.empty()) return;
    // Consider only copied states, because no state is in service while a fill is repeated.
    const auto epoch = [](const auto& copy) { return copy.second->store()->epoch(); };
    const Store* newest = std::ranges::max_element(kept_, {}, epoch)->second->store();
    const bool room =
        2 * newest->counted_bytes() + newest->kept_bytes() <= service_.memory().most();
    for (auto copy = kept_.begin(); copy != kept_.end();) {
      if (room && copy->second->store() == newest) {
        ++copy;
        continue;
      }
      dropped.push_back(std::move(copy->second));
      copy = kept_.erase(copy);
    }
  }
  const int count = static_cast<int>(dropped.size());
  dropped.clear();
  service_.OnTablesKept(-count);
}

void PeerSession::ReadCopy(const rpc::FrameHeader& header, std::string_view body) {
  if (Status status = AddPiece(header, body); !status.ok()) {
    return ReplyTo(header.sequence, status);
  }
  connection_.Wake();
}

Status PeerSession::AddPiece(const rpc::FrameHeader& header, std::string_view body) {
  PieceRequest request{
      .copy = static_cast<uint64_t>(header.value), .sequence = header.sequence, .piece = {}};
  if (body.size() != sizeof(request.piece))
    return InvalidArgument("expected ", sizeof(request.piece), " bytes, got ", body.size());
  std::memcpy(&request.piece, body.data(), sizeof(request.piece));
  if (request.piece.length == 0 || request.piece.length > rpc::kFrameTargetBytes) {
    return InvalidArgument("a piece has 1 to ", rpc::kFrameTargetBytes, " bytes, got ",
                           request.piece.length);
  }
  MutexLock lock(mutex_);
  if (pieces_.size() >= kMostPieces)
    return ResourceExhausted(pieces_.size(), " pieces have been asked for and not yet sent");
  pieces_.push_back(request);
  return OkStatus();
}

std::optional<PeerSession::PieceRequest> PeerSession::TakePiece() {
  MutexLock lock(mutex_);
  if (pieces_.empty()) return std::nullopt;
  const PieceRequest request = pieces_.front();
  pieces_.pop_front();
  return request;
}

// A request does not keep the copy alive. Otherwise, a chief that does not read its answers could
// keep any number of copies.
Status PeerSession::ReadPiece(const PieceRequest& request, std::span<std::byte> to) {
  std::shared_ptr<const TableCopy> copy;
  {
    MutexLock lock(mutex_);
    const auto found = kept_.find(request.copy);
    if (found == kept_.end()) return NotFound("no copy ", request.copy, " of the tables is kept");
    copy = found->second;
  }
  const auto& [shard, slot, offset, length] = request.piece;
  RETURN_IF_ERROR(copy->Check(shard, slot, offset, length));
  return copy->Read(shard, slot, offset, to);
}

bool PeerSession::NextPiece(rpc::OutgoingFrame& frame) {
  while (const std::optional<PieceRequest> request = TakePiece()) {
    const wire::CopyPiece& piece = request->piece;
    const rpc::OwnedLease lease(buffers_->Take(piece.length));
    const std::span<std::byte> bytes = lease->bytes(piece.length);
    if (Status read = ReadPiece(*request, bytes); !read.ok()) {
      ReplyTo(request->sequence, read);
      continue;
    }
    frame.header = {.type = wire::kCopied, .sequence = request->sequence};
    frame.segments.push_back({.index = piece.shard,
                              .flags = piece.slot,
                              .offset = piece.offset,
                              .bytes = bytes,
                              .release = rpc::BufferPool::Lease::Release,
                              .argument = lease->Hold()});
    return true;
  }
  return false;
}

bool PeerSession::NextCopiedShard() {
  Store& store = *copy_.of.store;
  if (copy_.next == store.whole_shards().size()) return false;
  const int shard = store.whole_shards()[copy_.next++];
  const auto parts = static_cast<size_t>(1 + store.slots_of(shard));
  copy_.state.reset(buffers_->Take(store.bytes_of(shard) * parts));
  copy_.part = copy_.offset = 0;
  // Copy the whole shard at once, although it is sent in pieces, because value, slots and ledger
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
  text_ = std::move(copy_.of.ledger) + copy_.ledger;
  // Only ps 0 sends its counter, because it counts the job's steps.
  if (service_.index() == 0) text_ += copy_.of.store->CounterLedger();
  // Refuse longer frames: the chief would treat them as corrupted, and would repeat the copy
  // forever.
  if (Status fits = CheckFitsAFrame(text_.size(), "the ledger of the copy"); !fits.ok()) {
    ReplyTo(copy_.of.sequence, fits);
    text_.clear();
    copy_ = {};
    return false;
  }
  frame.header.type = wire::kSnapshotEnd;
  frame.header.step = copy_.of.store->step();
  frame.segments.push_back({.bytes = std::as_bytes(std::span(text_))});
  copy_ = {};
  return true;
}

void PeerSession::AppendCopy(rpc::OutgoingFrame& frame) {
  const Store& store = *copy_.of.store;
  const int shard = store.whole_shards()[copy_.next - 1];
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
