// Implements nested loops over up to four operands with arbitrary strides, for broadcasting,
// transposition and reduction. Adjacent dimensions are merged if every operand traverses them like
// a single dimension, so most cases need only one or two loops.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

inline constexpr int kMaxRank = 8;
inline constexpr int kMaxOperands = 4;

// Contains one stride per dimension, in elements. The stride is 0 along dimensions in which the
// operand is repeated.
using Strides = std::array<int64_t, kMaxRank>;

// Returns the strides of an operand that is not broadcast.
Strides StridesOf(const Operand& operand);
// Returns the strides that broadcast the operand to `shape`. The dimensions are aligned at the last
// one, and dimensions of size 1 are repeated. Returns InvalidArgument if the operand does not
// broadcast to `shape`.
StatusOr<Strides> BroadcastStrides(const Operand& operand, const Shape& shape);

class StridedLoop {
 public:
  // Returns Unimplemented if `shape` has more than kMaxRank dimensions.
  static StatusOr<StridedLoop> Create(const Shape& shape, std::span<const Strides> operands);

  // Return the number of iterations of all loops except the innermost (outer), and of the innermost
  // loop (inner).
  int64_t outer() const { return outer_; }
  int64_t inner() const { return dims_[rank_ - 1]; }
  int64_t inner_stride(int operand) const { return strides_[operand][rank_ - 1]; }
  int64_t outer_stride(int operand) const { return rank_ < 2 ? 0 : strides_[operand][rank_ - 2]; }
  int rank() const { return rank_; }
  // Return the number of iterations of loop `axis`, counted from the outermost loop, and the
  // distance in elements between consecutive iterations.
  int64_t size(int axis) const { return dims_[axis]; }
  int64_t stride(int operand, int axis) const { return strides_[operand][axis]; }

  // Calls body(offsets) for outer iterations [begin, end). `offsets` contains each operand's offset
  // in elements.
  template <typename Body>
  void ForEachInner(int64_t begin, int64_t end, const Body& body) const {
    if (begin >= end) return;
    std::array<int64_t, kMaxRank> index{};
    std::array<int64_t, kMaxOperands> offsets{};
    int64_t rest = begin;
    for (int d = rank_ - 2; d >= 0; --d) {
      index[d] = rest % dims_[d];
      rest /= dims_[d];
      for (int o = 0; o < operands_; ++o) offsets[o] += index[d] * strides_[o][d];
    }
    for (int64_t i = begin; i < end; ++i) {
      body(offsets);
      for (int d = rank_ - 2; d >= 0; --d) {
        for (int o = 0; o < operands_; ++o) offsets[o] += strides_[o][d];
        if (++index[d] < dims_[d]) break;
        index[d] = 0;
        for (int o = 0; o < operands_; ++o) offsets[o] -= dims_[d] * strides_[o][d];
      }
    }
  }

 private:
  int rank_ = 1;
  int operands_ = 0;
  int64_t outer_ = 1;
  std::array<int64_t, kMaxRank> dims_{};
  std::array<Strides, kMaxOperands> strides_{};
};

}  // namespace tfjob::kernels::cpu
