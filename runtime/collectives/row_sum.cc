#include "runtime/collectives/row_sum.h"

#include <algorithm>
#include <bit>

#include "runtime/base/check.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {

Status CheckRowIndices(std::span<const int64_t> indices, int64_t rows) {
  int64_t last = -1;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t index = indices[i];
    if (index < 0 || index >= rows) {
      return InvalidArgument("index ", index, ", at position ", i, ", is no row: expected 0 to ",
                             rows - 1);
    }
    if (index <= last) {
      return InvalidArgument("index ", index, ", at position ", i, ", follows index ", last,
                             ": expected strictly ascending indices");
    }
    last = index;
  }
  return OkStatus();
}

void RowSum::Find(std::span<const MatrixRows> ranks) {
  ENFORCE(!ranks.empty(), "a sum needs a rank");
  entries_.clear();
  of_rank_.clear();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    of_rank_.push_back(entries_.size());
    const std::span<const int64_t> indices = ranks[rank].indices;
    for (size_t i = 0; i < indices.size(); ++i)
      entries_.push_back({indices[i], static_cast<int>(rank), i});
  }
  of_rank_.push_back(entries_.size());
  Merge(0, ranks.size());
  indices_.clear();
  begins_.clear();
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!indices_.empty() && indices_.back() == entries_[i].index) continue;
    indices_.push_back(entries_[i].index);
    begins_.push_back(i);
  }
  begins_.push_back(entries_.size());
}

// Sorts the entries of the ranks [first, last) by index, then by rank.
void RowSum::Merge(size_t first, size_t last) {
  if (last - first < 2) return;
  const size_t middle = first + (last - first) / 2;
  Merge(first, middle);
  Merge(middle, last);
  const auto at = [this](size_t rank) {
    return entries_.begin() + static_cast<ptrdiff_t>(of_rank_[rank]);
  };
  // The merge is stable, so equal indices remain in rank order.
  std::inplace_merge(at(first), at(middle), at(last),
                     [](const Entry& a, const Entry& b) { return a.index < b.index; });
}

// Evaluates the tree for one row.
template <typename T>
class RowSum::Tree {
 public:
  Tree(std::span<const MatrixRows> ranks, size_t cols)
      : ranks_(ranks), cols_(cols), temporary_(std::bit_width(ranks.size()) * cols) {}

  // Returns the row's sum over the ranks [begin, end). `entries` has one entry for each of these
  // ranks that has the row, and is not empty. Returns either `buffer`, which then contains the sum,
  // or a pointer to a rank's row.
  const T* Sum(std::span<const Entry> entries, int begin, int end, T* buffer, size_t level = 0) {
    if (end - begin == 1) return RowOf(entries[0]);
    if (entries.size() == 1) return AddZero(RowOf(entries[0]), buffer);
    const int middle = TreeMiddle(begin, end);
    size_t left = 0;
    while (left < entries.size() && entries[left].rank < middle) ++left;
    if (left == 0) return AddZero(Sum(entries, middle, end, buffer, level), buffer);
    const T* const a = Sum(entries.first(left), begin, middle, buffer, level);
    if (left == entries.size()) return AddZero(a, buffer);
    const T* const b =
        Sum(entries.subspan(left), middle, end, &temporary_[level * cols_], level + 1);
    for (size_t i = 0; i < cols_; ++i) buffer[i] = a[i] + b[i];
    return buffer;
  }

 private:
  const T* RowOf(const Entry& entry) const {
    const auto* values =
        reinterpret_cast<const T*>(ranks_[static_cast<size_t>(entry.rank)].values.data());
    return values + entry.position * cols_;
  }
  // Add zero instead of copying the row: −0 + 0 is 0, so a copy could differ from the sum.
  const T* AddZero(const T* row, T* buffer) const {
    for (size_t i = 0; i < cols_; ++i) buffer[i] = row[i] + T{0};
    return buffer;
  }

  const std::span<const MatrixRows> ranks_;
  const size_t cols_;
  std::vector<T> temporary_;  // a row for each level of the tree
};

template <typename T>
void RowSum::AddAs(std::span<const MatrixRows> ranks, std::span<std::byte> sum) const {
  const size_t cols = sum.size() / sizeof(T) / rows();
  Tree<T> tree(ranks, cols);
  T* target = reinterpret_cast<T*>(sum.data());
  for (size_t i = 0; i < rows(); ++i, target += cols) {
    const auto entries = std::span(entries_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
    const T* const row = tree.Sum(entries, 0, static_cast<int>(ranks.size()), target);
    if (row != target) std::copy_n(row, cols, target);
  }
}

void RowSum::Add(DType dtype, std::span<const MatrixRows> ranks, std::span<std::byte> sum) const {
  if (rows() == 0) return;
  ENFORCE(sum.size() % (rows() * SizeOf(dtype)) == 0, "whole rows");
  switch (dtype) {
    case DType::kFloat32:
      return AddAs<float>(ranks, sum);
    case DType::kFloat64:
      return AddAs<double>(ranks, sum);
    default:
      ENFORCE(false, "rows of this type cannot be added");
  }
}

}  // namespace tfjob::collectives
