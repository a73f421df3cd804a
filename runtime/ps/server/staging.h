// Stores the gradients that wait for their step on one server, and sums them. Private to this
// package.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kernels/stream.h"
#include "runtime/ps/protocol/ledger.h"
#include "runtime/ps/server/intake.h"
#include "runtime/ps/server/store.h"
#include "runtime/rpc/buffer_pool.h"
#include "runtime/rpc/frame.h"

namespace tfjob::ps {

// Stores one contribution's updates for this server's shards, or the sum of several contributions.
// One thread fills a Staging and then passes it to another.
class Staging {
 public:
  // `slot` is null for small contributions, any number of which may arrive at the same time.
  Staging(std::shared_ptr<Store> store, std::shared_ptr<rpc::BufferPool> buffers,
          protocol::Name name, std::unique_ptr<Intake::Slot> slot);
  // Sets the number of rows of the shard's update. Call it before Take if the shard's gradient
  // arrives as rows and the contribution has an update for the shard.
  void BeginRows(int shard, int64_t rows);
  // Returns InvalidArgument unless the received rows are rows of the shard. Must be called once all
  // bytes of the shard's update have arrived, before the update is used.
  Status CheckRows(int shard) const;
  // Reads `length` bytes of the shard's update to position `offset`. A length of 0 means that the
  // contribution has no update for the shard. Returns Unavailable if the stream breaks.
  Status Take(rpc::IncomingFrame& frame, int shard, size_t offset, size_t length);
  // Called after all bytes have arrived: admits the next contribution.
  void EndIntake() { slot_ = nullptr; }
  // Returns null if there is no update for the shard.
  const std::byte* update(int shard) const;
  // Returns the number of rows in update(shard), if the shard's gradient arrives as rows.
  int64_t rows(int shard) const { return rows_[store_->PlaceOf(shard)]; }
  // Returns the number of contributions that are summed in update(shard).
  int count(int shard) const;
  // If the shard's updates are gradients: replaces their sum with their mean, clipped by value. The
  // mean counts as one contribution.
  void ClipMean(int shard);
  // Returns, for each norm, the sum of squares of the mean of the contributions summed here.
  std::vector<double> SquaresOfMean(kernels::Stream& stream) const;
  // Frees the shard's update, once it has been applied.
  void Free(int shard);
  // Drops the updates that the store's ledger contains. Must be called before Absorb and count.
  void DropApplied();
  // Adds the updates of `other` to the updates here, and frees those of `other`.
  void Absorb(Staging& other);
  // Like Absorb(other), but for one shard.
  void Absorb(int shard, Staging& other);

 private:
  // Bytes returns the whole update. Values returns only its values, without the indices of rows.
  std::span<std::byte> Bytes(int shard) const;
  std::span<std::byte> Values(int shard) const;
  void AddRowsOf(int shard, const Staging& other);

  const std::shared_ptr<Store> store_;
  const std::shared_ptr<rpc::BufferPool> buffers_;
  const protocol::Name name_;
  std::unique_ptr<Intake::Slot> slot_;
  bool checked_ = false;  // DropApplied was called
  std::vector<rpc::OwnedLease> updates_;
  std::vector<int> counts_;
  std::vector<int64_t> rows_;
};

// Sums the contributions of a commit in pairs, as the merge tree prescribes, even if the merges
// were not requested or the requests arrived too late. The bits of the sum therefore depend only on
// the set of contributions. updates[i] belongs to set[i].
void SumInPairs(const std::vector<protocol::Name>& set,
                const std::vector<std::shared_ptr<Staging>>& updates);
// Adds the sums that remain after SumInPairs to the first of them, in the order of the set, as
// Store::ApplyMean would.
void SumIntoFirst(const std::vector<std::shared_ptr<Staging>>& updates);

}  // namespace tfjob::ps
