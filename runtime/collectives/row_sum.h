// Sums matrices, such as the gradients of a table, of which each rank has only some rows. Rows that
// a rank lacks count as zeros. The sum is therefore bit-identical to that of reduction.h: the
// pairwise tree over all ranks, in rank order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::collectives {

// Some rows of a matrix.
struct MatrixRows {
  std::span<const int64_t> indices;   // strictly ascending
  std::span<const std::byte> values;  // one row for each index, aligned to the element type
};

// Returns OK if the indices are strictly ascending and lie in [0, rows). Otherwise, the error
// message starts with the first wrong index: "index 7, at position 1, …".
Status CheckRowIndices(std::span<const int64_t> indices, int64_t rows);

// Owned by one thread. Reuses its memory for the next sum.
class RowSum {
 public:
  // Finds the rows that at least one rank has. `ranks` has one entry per rank, in rank order, and
  // is not empty.
  void Find(std::span<const MatrixRows> ranks);
  // Returns the number of rows that Find has found.
  size_t rows() const { return indices_.size(); }
  // Returns the indices of these rows, in ascending order.
  std::span<const int64_t> indices() const { return indices_; }

  // Sets `sum` to the sums of these rows, one after another. `ranks` must be the argument of the
  // last Find. `dtype` is float32 or float64.
  void Add(DType dtype, std::span<const MatrixRows> ranks, std::span<std::byte> sum) const;

 private:
  // A row of one rank.
  struct Entry {
    int64_t index;
    int rank;
    size_t position;  // among the rank's rows
  };

  void Merge(size_t first, size_t last);
  template <typename T>
  class Tree;
  template <typename T>
  void AddAs(std::span<const MatrixRows> ranks, std::span<std::byte> sum) const;

  std::vector<Entry> entries_;   // by index, then by rank
  std::vector<size_t> of_rank_;  // where the entries of a rank start before they are merged
  std::vector<int64_t> indices_;
  std::vector<size_t> begins_;  // where each index starts in entries_; last, the number of entries
};

}  // namespace tfjob::collectives
