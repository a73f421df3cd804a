// Numbers the examples of several sources, such as files, as tf.data.Dataset.interleave does: a
// cycle of sources gives a block of examples each, in turn. A source that has no more examples
// leaves its place in the cycle to the next source that has not begun yet, whose first block comes
// when it is the turn of this place again. The rules are those of TensorFlow's
// core/kernels/data/interleave_dataset_op.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/operators/place.h"

namespace tfjob::data {

class Interleaving {
 public:
  static constexpr int64_t kMostPlaces = int64_t{1} << 24;  // in all rounds; see Round

  // Every size is at least 1. Returns InvalidArgument if a length is below 1, or if so many sources
  // end at different times that a description of the order would need too much memory.
  static StatusOr<Interleaving> Create(std::span<const int64_t> sizes, int64_t cycle_length,
                                       int64_t block_length);

  int64_t size() const { return size_; }
  // `index` is in [0, size()).
  Place At(int64_t index) const;

 private:
  // Rounds of the cycle in which the same sources give a block each, or a single block.
  struct Round {
    int64_t begin;  // the number of its first example
    int64_t block;  // examples per block
    size_t first;   // in turns_
    size_t turns;   // sources that give a block, in this order
  };

  std::vector<Round> rounds_;
  std::vector<Place> turns_;  // each source, and the first example that it gives
  int64_t size_ = 0;

  class Builder;
};

}  // namespace tfjob::data
