#include "runtime/ps/server/store.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "runtime/base/check.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/rate_record.h"

namespace tfjob::ps {
namespace {

// The highest incarnation that a ledger may name. A peer may announce higher ones, so a new process
// can always get a higher incarnation than any in a ledger.
constexpr int64_t kGreatestIncarnation = int64_t{1} << 59;

template <typename T>
std::span<T> As(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <typename T>
std::span<const T> As(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <typename T>
void Optimize(const optimizer::Optimizer& optimizer, std::span<std::byte> value,
              std::span<const std::span<std::byte>> slot_bytes, std::span<const std::byte> gradient,
              int64_t step, double scale, kernels::Stream& stream) {
  std::span<T> slots[optimizer::kMaxSlots];
  for (size_t i = 0; i < slot_bytes.size(); ++i) slots[i] = As<T>(slot_bytes[i]);
  optimizer::Apply(optimizer, step, As<T>(value), As<T>(gradient), {slots, slot_bytes.size()},
                   stream, static_cast<T>(scale));
}

template <typename T>
void OptimizeRows(const optimizer::Optimizer& optimizer, std::span<std::byte> value,
                  std::span<const std::span<std::byte>> slot_bytes, const ShardRows& shard,
                  const RowUpdate<const std::byte>& update, int64_t step, double scale,
                  kernels::Stream& stream) {
  std::span<T> slots[optimizer::kMaxSlots];
  for (size_t i = 0; i < slot_bytes.size(); ++i) slots[i] = As<T>(slot_bytes[i]);
  const optimizer::GradientRows<T> gradient{.indices = update.indices,
                                            .values = As<T>(update.values),
                                            .first_index = shard.first,
                                            .cols = shard.bytes / static_cast<int64_t>(sizeof(T))};
  optimizer::ApplyRows(optimizer, step, As<T>(value), gradient, {slots, slot_bytes.size()}, stream,
                       static_cast<T>(scale));
}

// Computes value = keep * value + scale * update, with keep 0 or 1.
template <typename T>
void Blend(std::span<std::byte> value, std::span<const std::byte> update, bool keep, double scale) {
  std::span<T> to = As<T>(value);
  std::span<const T> from = As<T>(update);
  for (size_t i = 0; i < to.size(); ++i) {
    const T addend = scale == 1 ? from[i] : static_cast<T>(static_cast<double>(from[i]) * scale);
    to[i] = keep ? static_cast<T>(to[i] + addend) : addend;
  }
}

void Blend(DType dtype, std::span<std::byte> value, std::span<const std::byte> update, bool keep,
           double scale) {
  if (!keep && scale == 1) {
    std::memcpy(value.data(), update.data(), update.size());
    return;
  }
  switch (dtype) {
    case DType::kFloat32:
      return Blend<float>(value, update, keep, scale);
    case DType::kFloat64:
      return Blend<double>(value, update, keep, scale);
    case DType::kInt32:
      return Blend<int32_t>(value, update, keep, scale);
    case DType::kInt64:
      return Blend<int64_t>(value, update, keep, scale);
    // For these types, no mean is computed, so the last update of the set wins.
    case DType::kUInt8:
    case DType::kBool:
    case DType::kBFloat16:  // ps/definition.cc refuses variables of these two
    case DType::kFloat16:
      std::memcpy(value.data(), update.data(), update.size());
  }
}

// These numbers take the place of the shard's index in ledger lines that do not belong to a shard.
// Older versions also wrote lines with -2, which need not be read.
constexpr int kCounter = -1;
constexpr int kPosition = -3;

// Returns the distance in bytes between the starts of two consecutive parts of a shard (its value
// and its slots).
constexpr size_t StrideOf(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

ShardRows RowsOf(const state::Variable& variable, const Shard& shard) {
  const int64_t bytes = RowBytes(variable);
  return {shard.offset / bytes, shard.size / bytes, bytes, variable.dtype};
}

int SlotsFor(const Definition& definition, const state::Variable& variable) {
  return static_cast<int>(state::SlotsOf(variable, definition.state.optimizer).size());
}

}  // namespace

Store::Entry::Entry(const state::Variable& variable, size_t bytes, int slots)
    : dtype(variable.dtype),
      update(variable.update),
      bytes(bytes),
      slots(slots),
      stride(StrideOf(bytes)),
      received(static_cast<size_t>(1 + slots)),
      // The fill writes every byte before the store is used.
      state(std::make_unique<Buffer>(stride * received.size(), Buffer::Contents::kUndefined)) {}

std::span<std::byte> Store::Entry::Part(int part) const {
  const size_t begin = static_cast<size_t>(part) * stride;
  ENFORCE(part >= 0 && begin <= state->size() && bytes <= state->size() - begin,
          "a part of a shard lies in its memory");
  return {state->data() + begin, bytes};
}

int64_t Store::BytesFor(const Definition& definition, int server, int servers) {
  int64_t total = 0;
  for (const Shard& shard : Place(definition, servers)) {
    if (shard.server != server) continue;
    const state::Variable& variable =
        definition.state.variables[static_cast<size_t>(shard.variable)];
    const size_t stride = StrideOf(static_cast<size_t>(shard.size));
    total += static_cast<int64_t>(stride) * (1 + SlotsFor(definition, variable));
  }
  return total;
}

Store::Store(Definition definition, int server, int servers, int64_t epoch)
    : definition_(std::move(definition)),
      servers_(servers),
      epoch_(epoch),
      fingerprint_(Fingerprint(definition_)) {
  const std::vector<Shard> shards = Place(definition_, servers);
  local_.assign(shards.size(), -1);
  for (int i = 0; i < static_cast<int>(shards.size()); ++i) {
    const Shard& shard = shards[static_cast<size_t>(i)];
    if (shard.server != server) continue;
    const state::Variable& variable =
        definition_.state.variables[static_cast<size_t>(shard.variable)];
    auto entry = std::make_unique<Entry>(variable, static_cast<size_t>(shard.size),
                                         SlotsFor(definition_, variable));
    entry->variable = shard.variable;
    entry->optimizer = optimizer::ForVariable(definition_.state.optimizer, variable.name);
    if (variable.constraint.present())
      entry->projection = optimizer::Projection(variable.constraint, ShapeOf(variable, shard));
    entry->keeps_rows = optimizer::KeepsRows(entry->optimizer) && !variable.constraint.present();
    if (HasRowGradient(definition_, shard.variable)) entry->rows = RowsOf(variable, shard);
    if (IsTable(definition_, shard.variable)) {
      entry->table_rows = RowsOf(variable, shard);
    } else {
      whole_.push_back(i);
    }
    unfilled_ += shard.size * (1 + entry->slots);
    local_[static_cast<size_t>(i)] = static_cast<int>(entries_.size());
    own_.push_back(i);
    entries_.push_back(std::move(entry));
  }
}

Store::Entry& Store::At(int shard) const {
  return *entries_[static_cast<size_t>(local_[static_cast<size_t>(shard)])];
}

int64_t Store::total_bytes() const {
  int64_t total = 0;
  for (const auto& entry : entries_) {
    total += static_cast<int64_t>(entry->bytes) * (1 + entry->slots);
  }
  return total;
}

void Store::Project(Entry& entry) {
  if (entry.dtype == DType::kFloat64) {
    entry.projection.Run(As<double>(entry.Part(0)));
  } else {
    entry.projection.Run(As<float>(entry.Part(0)));
  }
}

void Store::ApplyLocked(Entry& entry, std::span<const std::byte> update, int64_t step, double scale,
                        kernels::Stream& stream) {
  if (update.empty()) return;
  KeepBeforeWrite(entry);
  if (entry.update != state::Update::kGradient) {
    Blend(entry.dtype, entry.Part(0), update, entry.update == state::Update::kAssignAdd, scale);
    return;
  }
  std::span<std::byte> slots[optimizer::kMaxSlots];
  const auto count = static_cast<size_t>(entry.slots);
  for (size_t i = 0; i < count; ++i) slots[i] = entry.Part(static_cast<int>(i) + 1);
  auto* optimize = entry.dtype == DType::kFloat64 ? &Optimize<double> : &Optimize<float>;
  optimize(entry.optimizer, entry.Part(0), {slots, count}, update, step, scale, stream);
  Project(entry);
}

void Store::ApplyRowsLocked(Entry& entry, std::span<const std::byte> update, int64_t rows,
                            int64_t step, double scale, kernels::Stream& stream) {
  // Tasks send an update to every shard of a table. Skip an empty update: if KeepBeforeWrite copied
  // the shard for it, every save would copy the whole table.
  if (rows == 0 && entry.keeps_rows) return;
  KeepBeforeWrite(entry);
  std::span<std::byte> slots[optimizer::kMaxSlots];
  const auto count = static_cast<size_t>(entry.slots);
  for (size_t i = 0; i < count; ++i) slots[i] = entry.Part(static_cast<int>(i) + 1);
  auto* optimize = entry.dtype == DType::kFloat64 ? &OptimizeRows<double> : &OptimizeRows<float>;
  optimize(entry.optimizer, entry.Part(0), {slots, count}, entry.rows,
           RowUpdate<const std::byte>::Of(update, rows), step, scale, stream);
  Project(entry);
}

bool Store::ApplyRows(int shard, const protocol::Name& name, std::span<const std::byte> update,
                      int64_t rows, int64_t step, kernels::Stream& stream) {
  Entry& entry = At(shard);
  MutexLock lock(entry.mutex);
  if (entry.ledger.Contains(name)) return false;
  entry.ledger.Record(name);
  ApplyRowsLocked(entry, update, rows, step, 1, stream);
  return true;
}

void Store::ApplyMeanOfRows(int shard, std::span<const protocol::Name> names,
                            std::span<const std::byte> update, int64_t rows, int count,
                            int64_t step, kernels::Stream& stream, double factor) {
  Entry& entry = At(shard);
  MutexLock lock(entry.mutex);
  for (const protocol::Name& name : names) entry.ledger.Record(name);
  if (count == 0) return;
  const double scale = (count == 1 ? 1 : 1.0 / count) * factor;
  ApplyRowsLocked(entry, update, rows, step, scale, stream);
}

bool Store::Apply(int shard, const protocol::Name& name, std::span<const std::byte> update,
                  int64_t step, kernels::Stream& stream) {
  Entry& entry = At(shard);
  MutexLock lock(entry.mutex);
  // The ledger and the value change under one lock, so a copy of the shard contains both changes or
  // neither.
  if (entry.ledger.Contains(name)) return false;
  entry.ledger.Record(name);
  ApplyLocked(entry, update, step, 1, stream);
  return true;
}

void Store::ApplyMean(int shard, std::span<const protocol::Name> names,
                      std::span<const std::byte* const> updates, std::span<std::byte> sum,
                      int64_t step, kernels::Stream& stream, std::span<const int> counts,
                      double factor) {
  Entry& entry = At(shard);
  sum = sum.first(entry.bytes);  // Blend reads sum.size() bytes of each update
  MutexLock lock(entry.mutex);
  const std::byte* only = nullptr;
  int terms = 0, contributions = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (counts.empty() && entry.ledger.Contains(names[i])) continue;
    entry.ledger.Record(names[i]);
    if (updates[i] == nullptr) continue;
    contributions += counts.empty() ? 1 : counts[i];
    // A single update is applied directly, without a copy into `sum`.
    if (++terms == 1) {
      only = updates[i];
      continue;
    }
    if (terms == 2) Blend(entry.dtype, sum, {only, entry.bytes}, false, 1);
    Blend(entry.dtype, sum, {updates[i], entry.bytes}, true, 1);
  }
  if (terms == 0) return;
  const double scale = (contributions == 1 ? 1 : 1.0 / contributions) * factor;
  const std::byte* total = terms == 1 ? only : sum.data();
  ApplyLocked(entry, {total, entry.bytes}, step, scale, stream);
}

bool Store::Applied(int shard, const protocol::Name& name) {
  Entry& entry = At(shard);
  MutexLock lock(entry.mutex);
  return entry.ledger.Contains(name);
}

void Store::Add(int shard, std::span<std::byte> to, std::span<const std::byte> update) const {
  Blend(At(shard).dtype, to, update, true, 1);
}

size_t Store::NormOf(int shard) const {
  const bool each = definition_.clipping.kind == optimizer::ClipKind::kNorm;
  return each ? static_cast<size_t>(At(shard).variable) : 0;
}

double Store::SquaresOfMean(int shard, std::span<const std::byte> sum, int count) const {
  const Entry& entry = At(shard);
  if (entry.update != state::Update::kGradient || count == 0) return 0;
  const double squares = entry.dtype == DType::kFloat64 ? optimizer::SumOfSquares(As<double>(sum))
                                                        : optimizer::SumOfSquares(As<float>(sum));
  return squares / count / count;
}

double Store::FactorOf(int shard, std::span<const double> squares) const {
  if (squares.empty() || At(shard).update != state::Update::kGradient) return 1;
  return optimizer::ClipFactor(definition_.clipping, squares[NormOf(shard)]);
}

bool Store::ClipMean(int shard, std::span<std::byte> sum, int count) const {
  const Entry& entry = At(shard);
  if (entry.update != state::Update::kGradient) return false;
  const double limit = definition_.clipping.limit, scale = 1.0 / count;
  if (entry.dtype == DType::kFloat64) {
    optimizer::ClipByValue(As<double>(sum), scale, limit);
  } else {
    optimizer::ClipByValue(As<float>(sum), scale, limit);
  }
  return true;
}

void Store::CopyValue(int shard, size_t offset, std::span<std::byte> to) {
  Entry& entry = At(shard);
  if (to.empty()) return;
  MutexLock lock(entry.mutex);
  std::memcpy(to.data(), entry.state->data() + offset, to.size());
}

void Store::CopyRows(int shard, std::span<const int64_t> indices, std::span<std::byte> to) {
  Entry& entry = At(shard);
  const auto bytes = static_cast<size_t>(entry.table_rows.bytes);
  MutexLock lock(entry.mutex);
  const std::span<const std::byte> value = entry.Part(0);
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto row = static_cast<size_t>(indices[i] - entry.table_rows.first);
    std::memcpy(to.data() + i * bytes, value.subspan(row * bytes, bytes).data(), bytes);
  }
}

void Store::AppendEntries(int shard, const protocol::Ledger& ledger, std::string& text) {
  for (const protocol::Name& name : ledger.entries()) {
    text += StrCat(shard, " ", name.worker.type, " ", name.worker.index, " ", name.incarnation, " ",
                   name.sequence, "\n");
  }
}

void Store::CopyState(int shard, std::byte* to, std::string& ledger) {
  Entry& entry = At(shard);
  MutexLock lock(entry.mutex);
  for (int part = 0; entry.bytes > 0 && part <= entry.slots; ++part) {
    std::memcpy(to, entry.Part(part).data(), entry.bytes);
    to += entry.bytes;
  }
  AppendEntries(shard, entry.ledger, ledger);
}

Status Store::CheckRange(uint32_t shard, uint32_t slot, uint64_t offset, uint64_t length) const {
  if (!Owns(shard)) return InvalidArgument("shard ", shard, " is not on this server");
  const Entry& entry = At(static_cast<int>(shard));
  if (slot >= entry.received.size() || length > entry.bytes || offset > entry.bytes - length) {
    return InvalidArgument("shard ", shard, " slot ", slot, ": no ", length, " bytes at ", offset);
  }
  return OkStatus();
}

std::span<std::byte> Store::FillTarget(uint32_t shard, uint32_t slot, uint64_t offset,
                                       uint64_t length) {
  Entry& entry = At(static_cast<int>(shard));
  // Count bytes only if they arrive in order, so that repeated bytes do not hide missing ones.
  if (size_t& received = entry.received[slot]; offset == received) {
    received += length;
    unfilled_ -= static_cast<int64_t>(length);
  }
  return entry.Part(static_cast<int>(slot)).subspan(offset, length);
}

std::map<protocol::Worker, int64_t> Store::Incarnations() {
  std::map<protocol::Worker, int64_t> newest;
  const auto add = [&](const protocol::Ledger& ledger) {
    for (const protocol::Name& name : ledger.entries()) {
      newest[name.worker] = std::max(newest[name.worker], name.incarnation);
    }
  };
  for (const auto& entry : entries_) {
    MutexLock lock(entry->mutex);
    add(entry->ledger);
  }
  MutexLock lock(counter_mutex_);
  add(counter_ledger_);
  return newest;
}

Status Store::SetLedger(const std::string& text) {
  std::istringstream lines(text);
  int shard = 0;
  protocol::Name name;
  while (lines >> shard) {
    if (!(lines >> name.worker.type >> name.worker.index >> name.incarnation >> name.sequence)) {
      return InvalidArgument("the ledger has an invalid line: shard ", shard);
    }
    if (shard == kRateLine) {
      const state::LearningRate rate = RateOf(name.incarnation, name.sequence);
      RETURN_IF_ERROR(SetLearningRate(rate));
      UseLearningRate(rate.rate);
      continue;
    }
    if (name.incarnation < 0 || name.incarnation > kGreatestIncarnation) {
      return InvalidArgument("the ledger has an impossible incarnation: ", name.incarnation);
    }
    if (shard == kCounter) {
      MutexLock lock(counter_mutex_);
      counter_ledger_.Record(name);
    } else if (shard == kPosition) {
      Drew(name.worker, static_cast<int64_t>(std::min<uint64_t>(name.sequence, INT64_MAX)));
    } else if (Owns(static_cast<uint32_t>(shard))) {
      Entry& entry = At(shard);
      MutexLock lock(entry.mutex);
      entry.ledger.Record(name);
    }
  }
  if (!lines.eof()) return InvalidArgument("the ledger cannot be read");
  MutexLock lock(counter_mutex_);
  if (drawn_.empty()) DerivePositions();
  return OkStatus();
}

void Store::DerivePositions() {
  const auto tasks = static_cast<double>(definition_.tasks.size());
  const bool synchronous = definition_.mode == Mode::kSynchronous;
  const double batches =
      static_cast<double>(step_.load()) * (synchronous ? definition_.replicas_to_aggregate : 1);
  for (const state::TaskId& task : definition_.tasks) {
    drawn_[{task.type, task.index}] = static_cast<int64_t>(std::min(batches / tasks, 1e18));
  }
}

std::string Store::CounterLedger() {
  std::string text;
  MutexLock lock(counter_mutex_);
  AppendEntries(kCounter, counter_ledger_, text);
  for (const auto& [task, drawn] : drawn_) {
    text += StrCat(kPosition, " ", task.type, " ", task.index, " 0 ", drawn, "\n");
  }
  if (learning_rate_) text += RateRecord(*learning_rate_);
  return text;
}

std::optional<state::LearningRate> Store::learning_rate() {
  MutexLock lock(counter_mutex_);
  return learning_rate_;
}

Status Store::SetLearningRate(const state::LearningRate& rate) {
  RETURN_IF_ERROR(state::CheckMaySet(rate.rate, definition_.state.optimizer));
  if (!rate.IsValid()) return InvalidArgument("learning rate: set at the step ", rate.step);
  MutexLock lock(counter_mutex_);
  learning_rate_ = rate;
  return OkStatus();
}

void Store::UseLearningRate(double rate) {
  if (!state::CheckMaySet(rate, definition_.state.optimizer).ok()) return;
  for (const auto& entry : entries_) {
    MutexLock lock(entry->mutex);
    entry->optimizer.learning_rate = rate;
  }
}

int64_t Store::Count(const protocol::Name& name, int64_t drawn) {
  MutexLock lock(counter_mutex_);
  // A worker whose answer was lost repeats its push. Count its step only once.
  if (counter_ledger_.Contains(name)) return step_;
  counter_ledger_.Record(name);
  if (drawn > 0) drawn_[name.worker] = std::max(drawn_[name.worker], drawn);
  return step_++;
}

void Store::Drew(const protocol::Worker& task, int64_t drawn) {
  MutexLock lock(counter_mutex_);
  drawn_[task] = std::max(drawn_[task], std::min(drawn, kMostDrawn));
}

int64_t Store::DrawnBy(const protocol::Worker& task) {
  MutexLock lock(counter_mutex_);
  const auto found = drawn_.find(task);
  return found == drawn_.end() ? 0 : found->second;
}

}  // namespace tfjob::ps
