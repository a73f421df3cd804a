// Adds up multiples of rows. This is a product of a sparse and a dense matrix, one row of the
// result at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tfjob::kernels::cpu {

// Adds value · rows[offset, offset + length) to the sums.
struct ScaledRow {
  int32_t offset = 0;  // in elements
  float value = 0;
};

// Returns whether the processor has vectors of 16 floats (AVX-512).
bool HasWideVectors();

// Writes a term for each of the values that is not 0. The offset of value i is i · step. Returns
// the number of terms. May overwrite `terms` up to terms[count - 1]. Uses wide vectors if `wide` is
// set, which the processor must then have.
int64_t FindScaledRows(int64_t count, const float* values, int64_t step, ScaledRow* terms,
                       bool wide = HasWideVectors());

// The length of rows must be a multiple of this number of elements.
inline constexpr int64_t kRowUnit = 16;

// Adds rows of one length. The result does not depend on the width of the vectors, if both widths
// have fused multiplication and addition (or none has).
class RowSum {
 public:
  explicit RowSum(int64_t length, bool wide = HasWideVectors());

  // Adds all terms to `sums`, in the order of the terms. Rows and sums that start at multiples of
  // 64 bytes are fastest.
  void Add(std::span<const ScaledRow> terms, const float* rows, float* sums) const {
    for (const Block& block : blocks_) block.add(terms, rows + block.begin, sums + block.begin);
  }

 private:
  // Adds some of the columns.
  struct Block {
    void (*add)(std::span<const ScaledRow> terms, const float* rows, float* sums);
    int64_t begin;
  };
  std::vector<Block> blocks_;
};

}  // namespace tfjob::kernels::cpu
