// Numbers the examples of several sources: first the examples of the first source, then the
// examples of the second, and so on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/operators/place.h"

namespace tfjob::data {

class Concatenation {
 public:
  // `sizes` contains the size of each source. There must be at least one source, and each size must
  // be at least 1.
  explicit Concatenation(std::span<const int64_t> sizes);

  int64_t size() const { return ends_.back(); }
  // Returns the place of example `index`, which is in [0, size()).
  Place At(int64_t index) const;

 private:
  std::vector<int64_t> ends_;  // for each source, the index after that of its last example
};

}  // namespace tfjob::data
