// Mixes the examples of several sources in proportion to weights, as
// tf.data.Dataset.sample_from_datasets does, but evenly rather than at random. Let w be the share
// of a source in the total weight of the K sources. The first n examples of the mixture then
// contain n·w examples of this source, with an error of at most K.
//
// A mixture stores no list. The first source has an example at each place i at which floor((i·share
// + phase) / 2^32) increases, so its examples are spaced as evenly as possible (a Sturmian word).
// The second source takes its share of the remaining places in the same way, and so on. A short
// integer calculation therefore yields the number of examples of a source before any place, with
// the same result on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/operators/place.h"

namespace tfjob::data {

class Mixture {
 public:
  // Determines where the mixture ends.
  enum class Stop {
    // When the source of the next example has no example left, so no example is repeated.
    kFirst,
    // When every source has been read completely; shorter sources are repeated.
    kAll,
  };
  static constexpr int64_t kMost = int64_t{1} << 48;  // the maximum number of examples

  // `sizes` and `weights` have one element per source. The seed determines the phases, and
  // therefore the places of each source. Returns InvalidArgument if a weight is not a finite number
  // above 0, or if the mixture would have more than kMost examples. Also returns InvalidArgument if
  // a weight, divided by the sum of this weight and all following ones and rounded to a multiple of
  // 2^-32, is 0 or 1.
  static StatusOr<Mixture> Create(std::span<const int64_t> sizes, std::span<const double> weights,
                                  Stop stop, uint64_t seed);

  int64_t size() const { return size_; }
  // Returns the place of example `index`, which is in [0, size()).
  Place At(int64_t index) const;
  // Returns how many of the first `index` examples are from this source.
  int64_t Count(size_t source, int64_t index) const;

 private:
  // Determines which places a source takes among the places that earlier sources have left free.
  struct Share {
    uint64_t share;  // in units of 2^-32
    uint64_t phase;  // in [0, 2^32)
    // Returns how many of the first `places` free places the source takes.
    int64_t Taken(int64_t places) const;
  };
  Mixture() = default;
  bool Ends(int64_t size, Stop stop) const;
  Status FindSize(Stop stop);

  std::vector<int64_t> sizes_;
  std::vector<Share> shares_;  // one per source, except the last
  int64_t size_ = 0;
};

}  // namespace tfjob::data
