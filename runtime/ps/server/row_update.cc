#include "runtime/ps/server/row_update.h"

#include <cstring>

namespace tfjob::ps {
namespace {

// Calls visit(i, j) for each index in the union of `a` and `b`, in ascending order. i and j are the
// positions of the index in `a` and `b`, or -1 if the list does not contain it.
template <typename Visit>
void ForUnion(std::span<const int64_t> a, std::span<const int64_t> b, const Visit& visit) {
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool in_a = i < a.size() && (j == b.size() || a[i] <= b[j]);
    const bool in_b = j < b.size() && (i == a.size() || b[j] <= a[i]);
    visit(in_a ? static_cast<int64_t>(i) : -1, in_b ? static_cast<int64_t>(j) : -1);
    i += in_a ? 1 : 0;
    j += in_b ? 1 : 0;
  }
}

template <typename T>
void AddRow(std::byte* to, const std::byte* addend, size_t bytes) {
  auto* sum = reinterpret_cast<T*>(to);
  const auto* row = reinterpret_cast<const T*>(addend);
  for (size_t i = 0; i < bytes / sizeof(T); ++i) sum[i] += row[i];
}

}  // namespace

Status CheckRows(const ShardRows& shard, std::span<const int64_t> indices) {
  int64_t least = shard.first;
  for (const int64_t index : indices) {
    if (index < least || index >= shard.first + shard.count) {
      return InvalidArgument("row ", index, ": expected ascending rows from ", shard.first, " to ",
                             shard.first + shard.count - 1);
    }
    least = index + 1;
  }
  return OkStatus();
}

int64_t RowsOfSum(std::span<const int64_t> a, std::span<const int64_t> b) {
  int64_t rows = 0;
  ForUnion(a, b, [&](int64_t, int64_t) { ++rows; });
  return rows;
}

void AddRows(const ShardRows& shard, const RowUpdate<const std::byte>& a,
             const RowUpdate<const std::byte>& b, std::span<std::byte> sum) {
  const auto bytes = static_cast<size_t>(shard.bytes);
  const auto row = [bytes](const RowUpdate<const std::byte>& of, int64_t i) {
    return of.values.data() + static_cast<size_t>(i) * bytes;
  };
  auto* index = reinterpret_cast<int64_t*>(sum.data());
  std::byte* to = sum.data() + sum.size() / (sizeof(int64_t) + bytes) * sizeof(int64_t);
  ForUnion(a.indices, b.indices, [&](int64_t i, int64_t j) {
    *index++ = i >= 0 ? a.indices[static_cast<size_t>(i)] : b.indices[static_cast<size_t>(j)];
    std::memcpy(to, i >= 0 ? row(a, i) : row(b, j), bytes);
    if (i >= 0 && j >= 0) {
      (shard.dtype == DType::kFloat64 ? AddRow<double> : AddRow<float>)(to, row(b, j), bytes);
    }
    to += bytes;
  });
}

}  // namespace tfjob::ps
