// Numbers the examples of several sources, such as files, as tf.data.Dataset.interleave does. The
// sources in a cycle take turns, and provide a block of examples in each turn. When a source has no
// more examples, the next source that has not started takes its place in the cycle. It provides its
// first block at the next turn of this place. The rules are those of TensorFlow's
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
  static constexpr int64_t kMostPlaces = int64_t{1} << 24;  // limit on the length of turns_

  // `sizes` contains the size of each source, at least 1. Returns InvalidArgument if cycle_length
  // or block_length is below 1, or if so many sources end in different rounds that turns_ would
  // become too long.
  static StatusOr<Interleaving> Create(std::span<const int64_t> sizes, int64_t cycle_length,
                                       int64_t block_length);

  int64_t size() const { return size_; }
  // Returns the place of example `index`, which is in [0, size()).
  Place At(int64_t index) const;

 private:
  // Either several consecutive rounds in which each of the same sources provides a full block, or
  // one block of a single source.
  struct Round {
    int64_t begin;  // index of the first example
    int64_t block;  // examples per block
    size_t first;   // index in turns_ of the first source
    size_t turns;   // number of sources, which follow each other in turns_
  };

  std::vector<Round> rounds_;
  std::vector<Place> turns_;  // for each round, the first example of each of its sources
  int64_t size_ = 0;

  class Builder;
};

}  // namespace tfjob::data
