// Stores a server's shards: values, optimizer slots and, per shard, a ledger of the contributions
// that were applied.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/kernels/stream.h"
#include "runtime/ps/definition.h"
#include "runtime/ps/placement.h"
#include "runtime/ps/protocol/ledger.h"
#include "runtime/ps/server/row_update.h"
#include "runtime/ps/server/state_memory.h"
#include "runtime/state/learning_rate.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::ps {

// The state of a shard at the moment when it was kept (Store::BeginKeeping).
struct KeptShard {
  // A copy of the shard's memory at that moment; null if the shard has not changed since then.
  // Guarded by the shard's lock.
  std::shared_ptr<const Buffer> state;
  // Set if the shard has changed but there was no memory for a copy. Also guarded by the shard's
  // lock.
  bool lost = false;
};

// Thread-safe. Every shard has its own lock, so an update, a read and a copy of one shard exclude
// each other. A shard is identified by its index in Place(definition, servers).
class Store {
 public:
  // Requires a definition that Validate accepts. Allocates the memory that BytesFor returns.
  Store(Definition definition, int server, int servers, int64_t epoch);
  ~Store();
  // Returns the size of the values and slots of a server, in bytes. Requires a definition that
  // Validate accepts.
  static int64_t BytesFor(const Definition& definition, int server, int servers);

  const Definition& definition() const { return definition_; }
  int64_t epoch() const { return epoch_; }
  // Returns the number of servers that share the variables.
  int servers() const { return servers_; }
  uint64_t fingerprint() const { return fingerprint_; }
  // Returns this server's shards in ascending order.
  const std::vector<int>& shards() const { return own_; }
  bool Owns(uint32_t shard) const { return shard < local_.size() && local_[shard] >= 0; }
  // Returns the shard's index in shards().
  size_t PlaceOf(int shard) const {
    return static_cast<size_t>(local_[static_cast<size_t>(shard)]);
  }
  size_t bytes_of(int shard) const { return At(shard).bytes; }
  // Returns the layout of the shard's rows; null if its gradient does not arrive as rows.
  const ShardRows* rows_of(int shard) const {
    return At(shard).rows.count == 0 ? nullptr : &At(shard).rows;
  }
  // Returns the layout of the shard's rows; null if the shard does not belong to a table. Tasks
  // read such a shard as a whole.
  const ShardRows* table_rows_of(int shard) const {
    return At(shard).table_rows.count == 0 ? nullptr : &At(shard).table_rows;
  }
  // Returns this server's shards that tasks read whole, in ascending order.
  const std::vector<int>& whole_shards() const { return whole_; }
  int slots_of(int shard) const { return At(shard).slots; }
  // Returns the size of all values and slots, in bytes.
  int64_t total_bytes() const;
  // Returns the index of the norm (see NormsOf(definition)) that the shard belongs to.
  size_t NormOf(int shard) const;

  // The global step: the step of the state that filled the store, plus the number of steps applied
  // since then. In asynchronous mode, every server counts the contributions that it has applied
  // (see Count).
  std::atomic<int64_t>& step() { return step_; }

  // The rate that the chief has set; nullopt for the optimizer's own. Copies of the state contain
  // it.
  std::optional<state::LearningRate> learning_rate();
  // Propagates the errors of state::CheckMaySet. Updates use the rate only after UseLearningRate.
  Status SetLearningRate(const state::LearningRate& rate);
  // Makes all later updates use the rate. Ignores a rate that the optimizer does not accept.
  void UseLearningRate(double rate);

  // Applies the update of the contribution `name`. The update is a gradient, a value or a
  // difference, depending on the variable's state::Update. Returns false, and has no effect, if
  // `name` was applied before.
  bool Apply(int shard, const protocol::Name& name, std::span<const std::byte> update, int64_t step,
             kernels::Stream& stream);
  // Applies the mean of the updates of several contributions, summed in the given order. updates[i]
  // belongs to names[i], and is null if that contribution has no update for the shard.
  // Contributions that the ledger contains are skipped. `sum` is scratch memory of at least the
  // shard's size. If `counts` is given, updates[i] is the sum of counts[i] contributions, from
  // which the caller has removed those that the ledger contains. The mean gradient is multiplied by
  // `factor`, which clips it.
  void ApplyMean(int shard, std::span<const protocol::Name> names,
                 std::span<const std::byte* const> updates, std::span<std::byte> sum, int64_t step,
                 kernels::Stream& stream, std::span<const int> counts = {}, double factor = 1);
  // Like Apply, but for a shard whose gradient arrives as rows. `update` has `rows` rows, which
  // CheckRows accepts.
  bool ApplyRows(int shard, const protocol::Name& name, std::span<const std::byte> update,
                 int64_t rows, int64_t step, kernels::Stream& stream);
  // Applies the mean of `count` contributions, whose sum is `update`. If none of them has an update
  // for the shard, `count` is 0. Records all of `names`, from which the caller has removed those
  // that the ledger contains.
  void ApplyMeanOfRows(int shard, std::span<const protocol::Name> names,
                       std::span<const std::byte> update, int64_t rows, int count, int64_t step,
                       kernels::Stream& stream, double factor = 1);
  // Returns whether the ledger contains this contribution to the shard.
  bool Applied(int shard, const protocol::Name& name);
  // Adds one update of the shard to another, as ApplyMean would.
  void Add(int shard, std::span<std::byte> to, std::span<const std::byte> update) const;

  // Returns the sum of squares of the mean of `count` updates of the shard, whose sum is `sum`; 0
  // if the updates are not gradients.
  double SquaresOfMean(int shard, std::span<const std::byte> sum, int count) const;
  // Returns the `factor` for ApplyMean, from the sums of squares of the whole mean, one per norm.
  double FactorOf(int shard, std::span<const double> squares) const;
  // Replaces the sum of `count` gradients with their mean, clipped by value. Returns false, and has
  // no effect, if the updates are not gradients.
  bool ClipMean(int shard, std::span<std::byte> sum, int count) const;

  // Copies to.size() bytes of the value, starting at `offset`. Updates may happen between two
  // calls.
  void CopyValue(int shard, size_t offset, std::span<std::byte> to);
  // Copies the rows with these indices, which CheckRows accepts, in the order of `indices`.
  void CopyRows(int shard, std::span<const int64_t> indices, std::span<std::byte> to);
  // Copies the value, followed by the slots, to `to`, and appends the shard's ledger as text.
  void CopyState(int shard, std::byte* to, std::string& ledger);

  // BeginKeeping preserves the shard's current value and slots in `kept`, and appends the shard's
  // ledger as text. CopyKept copies bytes of the kept state. The first update after BeginKeeping
  // copies the shard, unless EndKeeping was called before. `kept` must not move between
  // BeginKeeping and EndKeeping, and the store must outlive it. If a copy would exceed the limit
  // set by CountIn, it is not made, and CopyKept returns ResourceExhausted.
  void BeginKeeping(int shard, KeptShard& kept, std::string& ledger);
  void EndKeeping(int shard, KeptShard& kept);
  Status CopyKept(int shard, const KeptShard& kept, int part, size_t offset,
                  std::span<std::byte> to);
  int64_t kept_bytes() const { return kept_bytes_; }
  int64_t counted_bytes() const { return counted_bytes_; }  // see CountIn; 0: not counted
  // Counts the store, which uses `bytes` (BytesFor), and its copies in `memory`. Without this call,
  // copies have no limit. Must be called before any other method.
  void CountIn(std::shared_ptr<StateMemory> memory, int64_t bytes);

  // Returns InvalidArgument if the shard's value (slot 0) or slot does not have these bytes.
  Status CheckRange(uint32_t shard, uint32_t slot, uint64_t offset, uint64_t length) const;
  // Returns the memory for bytes that CheckRange accepts, and counts them as received if they are
  // the next bytes of the value or slot. Used to fill the store before any other use.
  std::span<std::byte> FillTarget(uint32_t shard, uint32_t slot, uint64_t offset, uint64_t length);
  // Returns whether all bytes of all shards and slots have arrived, in order within each value or
  // slot.
  bool filled() const { return unfilled_ == 0; }

  // A ledger has one entry per line: "shard type index incarnation sequence". CopyState writes the
  // entries of a shard. CounterLedger writes those of the step counter (shard -1), the positions
  // (shard -3, with the number of batches in place of the sequence) and, if the chief has set one,
  // the learning rate (RateRecord). SetLedger reads all of these entries, but skips those of other
  // servers' shards. At step() > 0, a ledger without positions was written by an older version; the
  // tasks of the definition then begin at the position that they would have reached after step()
  // steps.
  Status SetLedger(const std::string& text);
  std::string CounterLedger();
  // Returns the newest incarnation of each task that a ledger of this server names.
  std::map<protocol::Worker, int64_t> Incarnations();

  // Asynchronous only. Counts a step for the contribution `name`, unless a step was already counted
  // for it, and records the task's position (see Drew). Returns the step before the call.
  int64_t Count(const protocol::Name& name, int64_t drawn = 0);

  // The position of each task in its data, that is, the number of batches that it has drawn for the
  // steps of this state. Only the positions on ps 0 are used. Drew never lowers a position, and
  // accepts at most 2^60.
  void Drew(const protocol::Worker& task, int64_t drawn);
  int64_t DrawnBy(const protocol::Worker& task);

 private:
  struct Entry {
    explicit Entry(const state::Variable& variable, size_t bytes, int slots);

    DType dtype = DType::kFloat32;
    state::Update update = state::Update::kGradient;
    int variable = 0;
    // As it applies to the variable. Its rate is guarded by `mutex` once the store is in use.
    optimizer::Optimizer optimizer;
    optimizer::Projection projection;
    size_t bytes = 0;
    int slots = 0;
    bool keeps_rows = false;  // an update changes only its own rows; without rows, it has no effect
    ShardRows rows;           // count 0: the gradient does not arrive as rows
    ShardRows table_rows;     // count 0: the shard belongs to no table
    // Returns the value (part 0) or a slot (parts from 1). Parts start at multiples of 64 bytes.
    std::span<std::byte> Part(int part) const;

    size_t stride = 0;
    std::vector<size_t> received;  // bytes received of each part, while the store is being filled
    Mutex mutex;
    std::unique_ptr<Buffer> state;  // guarded by `mutex` once the store is in use
    // The copies that share `state` until it changes.
    std::vector<KeptShard*> keepers ABSL_GUARDED_BY(mutex);
    protocol::Ledger ledger ABSL_GUARDED_BY(mutex);
  };

  Entry& At(int shard) const;
  void DerivePositions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(counter_mutex_);
  static void Project(Entry& entry);
  static void AppendEntries(int shard, const protocol::Ledger& ledger, std::string& text);
  // Copies the state for the keepers, if any. Must be called before each change of the state, with
  // the entry's lock held.
  void KeepBeforeWrite(Entry& entry) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Returns null if the copy would exceed the limit.
  std::shared_ptr<const Buffer> CopyWithinLimit(const Buffer& state);
  void ApplyLocked(Entry& entry, std::span<const std::byte> update, int64_t step, double scale,
                   kernels::Stream& stream);
  void ApplyRowsLocked(Entry& entry, std::span<const std::byte> update, int64_t rows, int64_t step,
                       double scale, kernels::Stream& stream);

  const Definition definition_;
  const int servers_;
  const int64_t epoch_;
  const uint64_t fingerprint_;
  std::vector<int> own_, whole_;
  std::vector<int> local_;  // shard → index in entries_, or -1
  std::vector<std::unique_ptr<Entry>> entries_;
  int64_t unfilled_ = 0;
  std::atomic<int64_t> step_ = 0;
  std::shared_ptr<StateMemory> memory_;  // null: not counted
  int64_t counted_bytes_ = 0;
  std::atomic<int64_t> kept_bytes_ = 0;  // the size of the copies of kept shards

  Mutex counter_mutex_;
  protocol::Ledger counter_ledger_ ABSL_GUARDED_BY(counter_mutex_);
  std::map<protocol::Worker, int64_t> drawn_ ABSL_GUARDED_BY(counter_mutex_);
  std::optional<state::LearningRate> learning_rate_ ABSL_GUARDED_BY(counter_mutex_);
};

}  // namespace tfjob::ps
