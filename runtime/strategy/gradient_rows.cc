#include "runtime/strategy/gradient_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/strategy/scale.h"

namespace tfjob::strategy {

int64_t MostRowsToSend(const TableItem& table) {
  const auto element = static_cast<int64_t>(SizeOf(table.dtype));
  const int64_t row = table.cols * element;
  const auto index = static_cast<int64_t>(sizeof(int64_t));
  return 2 * table.rows * (row + element) / (row + index);
}

GradientRows::GradientRows(std::vector<TableItem> tables) {
  for (TableItem& item : tables) {
    Table& table = tables_.emplace_back();
    table.indices = Tensor(DType::kInt64, {0});
    table.values = Tensor(item.dtype, {0, item.cols});
    table.item = std::move(item);
  }
}

size_t GradientRows::RowBytes(const Table& table) {
  return static_cast<size_t>(table.item.cols) * SizeOf(table.item.dtype);
}

// The size is a multiple of eight, so that the next table's indices are aligned.
size_t GradientRows::ValueBytes(const Table& table, int64_t count) {
  constexpr size_t kUnit = sizeof(int64_t);
  return (static_cast<size_t>(count) * RowBytes(table) + kUnit - 1) / kUnit * kUnit;
}

// Returns how many bytes a rank with `count` rows sends.
size_t GradientRows::PartBytes(const Table& table, int64_t count) {
  return table.by_rows ? IndexBytes(count) + ValueBytes(table, count) : 0;
}

void GradientRows::Begin() {
  for (Table& table : tables_) {
    table.count = 0;
    table.by_rows = true;
  }
}

void GradientRows::Set(size_t index, std::span<const int64_t> indices,
                       std::span<const std::byte> values, double weight) {
  Table& table = tables_[index];
  const size_t count = static_cast<size_t>(std::ranges::find(indices, -1) - indices.begin());
  table.count = static_cast<int64_t>(count);
  ENFORCE(count * RowBytes(table) <= values.size(), "a row for each index");
  table.own.resize(IndexBytes(table.count) + ValueBytes(table, table.count));
  if (count == 0) return;
  std::memcpy(table.own.data(), indices.data(), IndexBytes(table.count));
  const std::span<std::byte> to =
      std::span(table.own).subspan(IndexBytes(table.count), count * RowBytes(table));
  Scale(table.item.dtype, values.first(to.size()), weight, to);
}

Status GradientRows::Exchange(collectives::Communicator& communicator) {
  Status status = Run(communicator);
  // Abort, because the other ranks may have detected no error, and may be waiting for this rank.
  if (!status.ok()) communicator.Abort(status);
  return status;
}

void GradientRows::Disconnect() {
  for (Table& table : tables_) table.dense.reset();
}

int64_t GradientRows::CountOf(int rank, size_t table) const {
  return counts_[static_cast<size_t>(rank) * tables_.size() + table];
}

Status GradientRows::ExchangeCounts(collectives::Communicator& communicator) {
  const auto ranks = static_cast<size_t>(communicator.size());
  counts_.assign(ranks * tables_.size(), 0);
  for (size_t t = 0; t < tables_.size(); ++t)
    counts_[static_cast<size_t>(communicator.rank()) * tables_.size() + t] = tables_[t].count;
  RETURN_IF_ERROR(communicator.AllGather(std::as_writable_bytes(std::span(counts_)),
                                         tables_.size() * sizeof(int64_t)));
  for (size_t t = 0; t < tables_.size(); ++t) {
    Table& table = tables_[t];
    int64_t together = 0;
    for (int rank = 0; rank < communicator.size(); ++rank) {
      const int64_t count = CountOf(rank, t);
      if (count < 0 || count > table.item.rows) {
        return InvalidArgument("rank ", rank, " announced ", count, " rows of the gradient of ",
                               table.item.name, ", which has ", table.item.rows, " rows");
      }
      together += count;
    }
    table.by_rows = together <= MostRowsToSend(table.item);
  }
  return OkStatus();
}

// Returns the bytes that this rank sends.
std::span<const std::byte> GradientRows::Payload() {
  const auto part_of = [](const Table& table) {
    if (table.count == 0) return std::span<const std::byte>();
    return std::span(std::as_const(table.own)).first(PartBytes(table, table.count));
  };
  if (tables_.size() == 1) return part_of(tables_[0]);
  payload_.clear();
  for (const Table& table : tables_) {
    const std::span<const std::byte> part = part_of(table);
    payload_.insert(payload_.end(), part.begin(), part.end());
  }
  return payload_;
}

size_t GradientRows::PayloadBytes(int rank) const {
  size_t bytes = 0;
  for (size_t t = 0; t < tables_.size(); ++t) bytes += PartBytes(tables_[t], CountOf(rank, t));
  return bytes;
}

// Finds each rank's rows in the data that the rank has sent, and checks their indices.
Status GradientRows::Locate(int ranks) {
  for (Table& table : tables_) table.of_ranks.clear();
  std::span<const std::byte> rest = all_;
  const auto take = [&rest](size_t bytes) {
    const std::span<const std::byte> taken = rest.first(bytes);
    rest = rest.subspan(bytes);
    return taken;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t bytes = sizes_[static_cast<size_t>(rank)];
    if (bytes != PayloadBytes(rank)) {
      return InvalidArgument("rank ", rank, " sent ", bytes,
                             " bytes of rows of gradients: expected ", PayloadBytes(rank),
                             ", as it had announced");
    }
    for (size_t t = 0; t < tables_.size(); ++t) {
      Table& table = tables_[t];
      if (!table.by_rows) continue;
      const int64_t count = CountOf(rank, t);
      const std::span<const std::byte> indices = take(IndexBytes(count));
      const collectives::MatrixRows rows{
          .indices = {reinterpret_cast<const int64_t*>(indices.data()), static_cast<size_t>(count)},
          .values = take(ValueBytes(table, count))};
      const Status status = collectives::CheckRowIndices(rows.indices, table.item.rows);
      if (!status.ok()) {
        return InvalidArgument("rank ", rank, " sent wrong rows of the gradient of ",
                               table.item.name, ": ", Message(status));
      }
      table.of_ranks.push_back(rows);
    }
  }
  return OkStatus();
}

Status GradientRows::Run(collectives::Communicator& communicator) {
  RETURN_IF_ERROR(ExchangeCounts(communicator));
  size_t most_bytes = 0;
  for (int rank = 0; rank < communicator.size(); ++rank) most_bytes += PayloadBytes(rank);
  const std::span<const std::byte> payload = Payload();
  sent_bytes_ = payload.size();
  RETURN_IF_ERROR(communicator.AllGatherVariable(payload, most_bytes, all_, sizes_));
  RETURN_IF_ERROR(Locate(communicator.size()));
  for (Table& table : tables_) {
    if (table.by_rows) {
      AddRows(table);
    } else {
      RETURN_IF_ERROR(AddDense(communicator, table));
    }
  }
  return OkStatus();
}

void GradientRows::AddRows(Table& table) {
  table.sum.Find(table.of_ranks);
  table.rows = static_cast<int64_t>(table.sum.rows());
  Reserve(table, table.rows);
  std::ranges::copy(table.sum.indices(), table.indices.data<int64_t>().begin());
  const size_t bytes = table.sum.rows() * RowBytes(table);
  table.sum.Add(table.item.dtype, table.of_ranks, table.values.bytes().first(bytes));
}

Status GradientRows::AddDense(collectives::Communicator& communicator, Table& table) {
  if (table.dense == nullptr) {
    const auto elements = static_cast<size_t>(table.item.rows * (table.item.cols + 1));
    ASSIGN_OR_RETURN(table.dense, communicator.Allocate(elements * SizeOf(table.item.dtype)));
  }
  return table.item.dtype == DType::kFloat64 ? AddDenseAs<double>(communicator, table)
                                             : AddDenseAs<float>(communicator, table);
}

// Sums whole gradients. All elements of `dense` are zero on entry and after success.
template <typename T>
Status GradientRows::AddDenseAs(collectives::Communicator& communicator, Table& table) {
  const std::span<std::byte> dense = table.dense->bytes();
  const auto rows = static_cast<size_t>(table.item.rows), row_bytes = RowBytes(table);
  T* const ranks_with_row = reinterpret_cast<T*>(dense.data() + rows * row_bytes);
  const auto* own = reinterpret_cast<const int64_t*>(table.own.data());
  const std::byte* const values = table.own.data() + IndexBytes(table.count);
  for (size_t i = 0; i < static_cast<size_t>(table.count); ++i) {
    const auto row = static_cast<size_t>(own[i]);
    std::memcpy(dense.data() + row * row_bytes, values + i * row_bytes, row_bytes);
    ranks_with_row[row] = 1;
  }
  RETURN_IF_ERROR(communicator.AllReduce(dense, table.item.dtype, collectives::Reduction::kSum));
  Reserve(table, table.item.rows);
  const std::span<int64_t> indices = table.indices.data<int64_t>();
  std::byte* const sums = table.values.bytes().data();
  size_t found = 0;
  for (size_t row = 0; row < rows; ++row) {
    if (!(ranks_with_row[row] > 0)) continue;
    indices[found] = static_cast<int64_t>(row);
    std::memcpy(sums + found * row_bytes, dense.data() + row * row_bytes, row_bytes);
    ++found;
  }
  table.rows = static_cast<int64_t>(found);
  std::memset(dense.data(), 0, dense.size());
  return OkStatus();
}

// Ensures capacity for a sum of `rows` rows, and keeps the contents. When the capacity grows, it at
// least doubles, so that reallocations are rare.
void GradientRows::Reserve(Table& table, int64_t rows) {
  const int64_t old = table.indices.num_elements();
  if (old >= rows) return;
  const int64_t room = std::max(rows, 2 * old);
  Tensor indices(DType::kInt64, {room}, Buffer::Contents::kUndefined);
  Tensor values(table.item.dtype, {room, table.item.cols}, Buffer::Contents::kUndefined);
  std::ranges::copy(std::as_const(table.indices).bytes(), indices.bytes().begin());
  std::ranges::copy(std::as_const(table.values).bytes(), values.bytes().begin());
  table.indices = std::move(indices);
  table.values = std::move(values);
}

GradientRows::Rows GradientRows::Sum(size_t index) const {
  const Table& table = tables_[index];
  const auto rows = static_cast<size_t>(table.rows);
  return {.indices = table.indices.data<int64_t>().first(rows),
          .values = table.values.bytes().first(rows * RowBytes(table))};
}

GradientRows::Rows GradientRows::Padded(size_t index, int64_t rows) {
  Table& table = tables_[index];
  const auto count = static_cast<size_t>(table.rows), all = static_cast<size_t>(rows);
  ENFORCE(count <= all, "padding only adds rows");
  Reserve(table, rows);
  const std::span<int64_t> indices = table.indices.data<int64_t>().first(all);
  const std::span<std::byte> values = table.values.bytes().first(all * RowBytes(table));
  std::ranges::fill(indices.subspan(count), -1);
  std::ranges::fill(values.subspan(count * RowBytes(table)), std::byte{0});
  return {.indices = indices, .values = values};
}

}  // namespace tfjob::strategy
