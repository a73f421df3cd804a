#include "runtime/ps/server/staging.h"

#include <algorithm>
#include <utility>

#include "runtime/ps/protocol/merge_tree.h"

namespace tfjob::ps {

Staging::Staging(std::shared_ptr<Store> store, std::shared_ptr<rpc::BufferPool> buffers,
                 protocol::Name name, std::unique_ptr<Intake::Slot> slot)
    : store_(std::move(store)),
      buffers_(std::move(buffers)),
      name_(std::move(name)),
      slot_(std::move(slot)),
      updates_(store_->shards().size()),
      counts_(updates_.size(), 1),
      rows_(updates_.size(), 0) {}

void Staging::BeginRows(int shard, int64_t rows) {
  const size_t place = store_->PlaceOf(shard);
  rows_[place] = rows;
  updates_[place].reset(buffers_->Take(store_->rows_of(shard)->UpdateBytes(rows)));
}

Status Staging::CheckRows(int shard) const {
  if (update(shard) == nullptr) return OkStatus();
  return ps::CheckRows(*store_->rows_of(shard),
                       RowUpdate<std::byte>::Of(Bytes(shard), rows(shard)).indices);
}

Status Staging::Take(rpc::IncomingFrame& frame, int shard, size_t offset, size_t length) {
  if (length == 0) return OkStatus();
  if (slot_ != nullptr) slot_->Count(length);
  rpc::OwnedLease& update = updates_[store_->PlaceOf(shard)];
  if (offset == 0 && store_->rows_of(shard) == nullptr)
    update.reset(buffers_->Take(store_->bytes_of(shard)));
  return frame.Receive(Bytes(shard).subspan(offset, length));
}

const std::byte* Staging::update(int shard) const {
  const rpc::OwnedLease& update = updates_[store_->PlaceOf(shard)];
  return update == nullptr ? nullptr : update->data();
}

int Staging::count(int shard) const {
  const size_t place = store_->PlaceOf(shard);
  return updates_[place] == nullptr ? 0 : counts_[place];
}

std::span<std::byte> Staging::Bytes(int shard) const {
  const ShardRows* by_rows = store_->rows_of(shard);
  return updates_[store_->PlaceOf(shard)]->bytes(
      by_rows == nullptr ? store_->bytes_of(shard) : by_rows->UpdateBytes(rows(shard)));
}

std::span<std::byte> Staging::Values(int shard) const {
  if (store_->rows_of(shard) == nullptr) return Bytes(shard);
  return RowUpdate<std::byte>::Of(Bytes(shard), rows(shard)).values;
}

void Staging::DropApplied() {
  if (std::exchange(checked_, true)) return;
  for (int shard : store_->shards()) {
    if (store_->Applied(shard, name_)) Free(shard);
  }
}

void Staging::Absorb(Staging& other) {
  for (int shard : store_->shards()) Absorb(shard, other);
}

void Staging::Absorb(int shard, Staging& other) {
  const size_t place = store_->PlaceOf(shard);
  if (other.updates_[place] == nullptr) return;
  if (updates_[place] == nullptr) {
    updates_[place] = std::move(other.updates_[place]);
    counts_[place] = other.counts_[place];
    rows_[place] = other.rows_[place];
    return;
  }
  if (store_->rows_of(shard) == nullptr) {
    store_->Add(shard, Bytes(shard), other.Bytes(shard));
  } else {
    AddRowsOf(shard, other);
  }
  counts_[place] += other.counts_[place];
  other.Free(shard);
}

void Staging::AddRowsOf(int shard, const Staging& other) {
  const size_t place = store_->PlaceOf(shard);
  const ShardRows& shard_rows = *store_->rows_of(shard);
  using View = RowUpdate<const std::byte>;
  const View a = View::Of(Bytes(shard), rows(shard));
  const View b = View::Of(other.Bytes(shard), other.rows(shard));
  const int64_t both = RowsOfSum(a.indices, b.indices);
  const size_t bytes = shard_rows.UpdateBytes(both);
  rpc::OwnedLease sum(buffers_->Take(bytes));
  AddRows(shard_rows, a, b, sum->bytes(bytes));
  updates_[place] = std::move(sum);
  rows_[place] = both;
}

void Staging::Free(int shard) {
  updates_[store_->PlaceOf(shard)] = nullptr;
}

void Staging::ClipMean(int shard) {
  const int contributions = count(shard);
  if (contributions == 0) return;
  if (store_->ClipMean(shard, Values(shard), contributions)) counts_[store_->PlaceOf(shard)] = 1;
}

std::vector<double> Staging::SquaresOfMean(kernels::Stream& stream) const {
  const std::vector<int>& shards = store_->shards();
  std::vector<double> of_shard(shards.size());
  const auto measure = [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      if (count(shards[i]) == 0) continue;
      of_shard[i] = store_->SquaresOfMean(shards[i], Values(shards[i]), count(shards[i]));
    }
  };
  stream.ParallelFor(static_cast<int64_t>(shards.size()), 1, measure);
  // Sum in shard order, so that the result does not depend on the number of threads.
  std::vector<double> squares(NormsOf(store_->definition()));
  for (size_t i = 0; i < shards.size(); ++i) squares[store_->NormOf(shards[i])] += of_shard[i];
  return squares;
}

// ---- sums of several contributions

void SumInPairs(const std::vector<protocol::Name>& set,
                const std::vector<std::shared_ptr<Staging>>& updates) {
  const auto staging = [&](const protocol::Name& name) -> Staging& {
    return *updates[static_cast<size_t>(std::ranges::find(set, name) - set.begin())];
  };
  protocol::MergeTree tree;
  for (const protocol::Name& name : set) {
    // Absorb has no effect for contributions that were already merged.
    for (const auto& [into, from] : tree.Add(name)) staging(into).Absorb(staging(from));
  }
}

void SumIntoFirst(const std::vector<std::shared_ptr<Staging>>& updates) {
  for (size_t i = 1; i < updates.size(); ++i) updates[0]->Absorb(*updates[i]);
}

}  // namespace tfjob::ps
