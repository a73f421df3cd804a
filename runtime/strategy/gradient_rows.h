// Sums the gradients of tables over the ranks of a communicator. The gradient of a table is zero in
// all rows that the batch does not read, so each rank sends only the rows that its batch reads,
// with their indices. The sum is bit-identical to the sum of the whole gradients
// (collectives/row_sum.h).
//
//   AllGather          how many rows of each table each rank has
//   AllGatherVariable  for each table the indices, followed by the values
//   AllReduce          replaces AllGatherVariable for a table if this moves fewer bytes
//                      (MostRowsToSend): the whole gradient, and which rows it has
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/row_sum.h"
#include "runtime/strategy/bucket_plan.h"

namespace tfjob::strategy {

// Returns the break-even point: the largest number of rows, summed over all ranks, for which
// sending the rows moves no more bytes than an all-reduce of the whole gradient. Above it, the
// ranks use the all-reduce. If n ranks have c rows in total, sending them moves (n - 1) · c rows,
// each with its index. The all-reduce moves 2 · (n - 1) copies of the table, in which each row has
// an extra element that shows whether any rank has the row.
int64_t MostRowsToSend(const TableItem& table);

// Not thread-safe.
class GradientRows {
 public:
  // Some rows of the sum, in the order of the table.
  struct Rows {
    std::span<const int64_t> indices;
    std::span<const std::byte> values;
  };

  explicit GradientRows(std::vector<TableItem> tables);

  // Starts a step, in which this rank initially has no rows.
  void Begin();
  // Sets this rank's rows of a table to `values`, multiplied by `weight`. `indices` are strictly
  // ascending, and may be padded with -1 at the end.
  void Set(size_t table, std::span<const int64_t> indices, std::span<const std::byte> values,
           double weight);
  // Sums the rows of all ranks. All ranks must call Exchange. If the communicator fails, or if a
  // rank has sent invalid counts, sizes or indices, aborts the communicator with the error and
  // returns the error. In the second case, the error names that rank.
  Status Exchange(collectives::Communicator& communicator);
  // Releases the communicator's memory. Must be called before the communicator is destroyed.
  void Disconnect();

  // Returns the sum of a table's gradients in the last exchange: every row that at least one rank
  // had.
  Rows Sum(size_t table) const;
  // Like Sum, but padded to `rows` rows; padding rows are zero and have index -1.
  Rows Padded(size_t table, int64_t rows);

  // Returns the number of bytes that this rank passed to AllGatherVariable in the last exchange.
  size_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Table {
    TableItem item;
    std::vector<std::byte> own;  // of this rank: indices, then values
    int64_t count = 0;           // of this rank's rows
    bool by_rows = true;
    std::vector<collectives::MatrixRows> of_ranks;
    collectives::RowSum sum;
    Tensor indices, values;  // of the sum; there may be more rows than the sum has
    int64_t rows = 0;        // of the sum
    // The whole gradient, followed by one element per row, which counts the ranks that have the
    // row. Null until the whole gradient is first reduced.
    std::unique_ptr<collectives::Communicator::Memory> dense;
  };

  static size_t RowBytes(const Table& table);
  static size_t IndexBytes(int64_t count) { return static_cast<size_t>(count) * sizeof(int64_t); }
  static size_t ValueBytes(const Table& table, int64_t count);
  static size_t PartBytes(const Table& table, int64_t count);
  static void Reserve(Table& table, int64_t rows);
  int64_t CountOf(int rank, size_t table) const;
  Status ExchangeCounts(collectives::Communicator& communicator);
  std::span<const std::byte> Payload();
  size_t PayloadBytes(int rank) const;
  Status Locate(int ranks);
  Status Run(collectives::Communicator& communicator);
  static void AddRows(Table& table);
  static Status AddDense(collectives::Communicator& communicator, Table& table);
  template <typename T>
  static Status AddDenseAs(collectives::Communicator& communicator, Table& table);

  std::vector<Table> tables_;
  std::vector<int64_t> counts_;  // of all tables of rank 0, then of rank 1, …
  std::vector<std::byte>
      payload_;                 // of this rank, if it does not consist of a single table's `own`
  std::vector<std::byte> all_;  // of all ranks
  std::vector<size_t> sizes_;
  size_t sent_bytes_ = 0;
};

}  // namespace tfjob::strategy
