// Mixes the examples of several sources in proportion to weights, as
// tf.data.Dataset.sample_from_datasets does, but evenly rather than at random: among the first n
// examples of a mixture of K sources, a source with the weight w has n·w examples, give or take K.
//
// A mixture needs no list. The first source's examples are at the places where
// floor((i·share + phase) / 2^32) increases, which spaces them as evenly as possible (a Sturmian
// word). The second source takes its share of the other places in the same way, and so on. So how
// many examples of a source precede a place is a short calculation with integers, which gives the
// same result on every machine.
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
  // Where the mixture ends.
  enum class Stop {
    kFirst,  // before the first example of a source that has no more: no example is repeated
    kAll,    // when every source has been read completely: the others begin again meanwhile
  };
  static constexpr int64_t kMost = int64_t{1} << 48;  // examples

  // `sizes` and `weights` have one value per source. The seed determines where the sources begin.
  // Returns InvalidArgument if a weight is not a finite number above 0, if a weight is less than
  // 2^-31 of the following ones or of all, or if the mixture would have more than kMost examples.
  static StatusOr<Mixture> Create(std::span<const int64_t> sizes, std::span<const double> weights,
                                  Stop stop, uint64_t seed);

  int64_t size() const { return size_; }
  // `index` is in [0, size()).
  Place At(int64_t index) const;
  // Returns how many of the first `index` examples are from this source.
  int64_t Count(size_t source, int64_t index) const;

 private:
  // A source's share of the places that the sources before it leave.
  struct Share {
    uint64_t share;  // in units of 2^-32
    uint64_t phase;  // in [0, 2^32)
    int64_t Taken(int64_t places) const;
  };
  Mixture() = default;
  bool Ends(int64_t size, Stop stop) const;
  Status FindSize(Stop stop);

  std::vector<int64_t> sizes_;
  std::vector<Share> shares_;  // of all sources but the last
  int64_t size_ = 0;
};

}  // namespace tfjob::data
