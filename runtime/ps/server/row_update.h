// Reads, checks and adds the updates of shards whose gradients arrive as rows. Private to this
// package.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::ps {

// The layout of the rows in a shard whose gradient arrives as rows, or that belongs to a table.
struct ShardRows {
  int64_t first = 0;  // the index of its first row in the variable
  int64_t count = 0;
  int64_t bytes = 0;  // of each row
  DType dtype = DType::kFloat32;

  // Returns the size of an update of n rows: their indices, followed by their values.
  size_t UpdateBytes(int64_t n) const {
    return static_cast<size_t>(n) * (sizeof(int64_t) + static_cast<size_t>(bytes));
  }
};

// The two parts of an update.
template <typename Byte>
struct RowUpdate {
  std::span<const int64_t> indices;
  std::span<Byte> values;

  static RowUpdate Of(std::span<Byte> update, int64_t n) {
    const auto count = static_cast<size_t>(n);
    return {{reinterpret_cast<const int64_t*>(update.data()), count},
            update.subspan(count * sizeof(int64_t))};
  }
};

// Returns InvalidArgument unless the indices are ascending and refer to rows of the shard.
Status CheckRows(const ShardRows& shard, std::span<const int64_t> indices);

// Returns the number of rows in the sum of two updates.
int64_t RowsOfSum(std::span<const int64_t> a, std::span<const int64_t> b);

// Writes the sum of `a` and `b` to `sum`, which must have the size of RowsOfSum rows. Rows that
// occur in both updates are added; other rows are copied.
void AddRows(const ShardRows& shard, const RowUpdate<const std::byte>& a,
             const RowUpdate<const std::byte>& b, std::span<std::byte> sum);

}  // namespace tfjob::ps
