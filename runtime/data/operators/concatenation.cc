#include "runtime/data/operators/concatenation.h"

#include <algorithm>

namespace tfjob::data {

Concatenation::Concatenation(std::span<const int64_t> sizes) {
  int64_t end = 0;
  for (const int64_t size : sizes) ends_.push_back(end += size);
}

Place Concatenation::At(int64_t index) const {
  const auto end = std::ranges::upper_bound(ends_, index);
  const auto source = static_cast<size_t>(end - ends_.begin());
  return {source, source == 0 ? index : index - ends_[source - 1]};
}

}  // namespace tfjob::data
