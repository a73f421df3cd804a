// Numbers the examples of several sources one source after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/operators/place.h"

namespace tfjob::data {

class Concatenation {
 public:
  // At least one source; every size is at least 1.
  explicit Concatenation(std::span<const int64_t> sizes);

  int64_t size() const { return ends_.back(); }
  // `index` is in [0, size()).
  Place At(int64_t index) const;

 private:
  std::vector<int64_t> ends_;  // by source
};

}  // namespace tfjob::data
