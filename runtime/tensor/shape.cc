#include "runtime/tensor/shape.h"

#include <algorithm>

namespace tfjob {

int64_t Shape::num_elements() const {
  int64_t count = 1;
  for (int64_t dim : dims_) count *= dim;
  return count;
}

std::optional<int64_t> Shape::CheckedElements() const {
  if (std::ranges::any_of(dims_, [](int64_t dim) { return dim < 0; })) return std::nullopt;
  // A shape with a dimension of 0 has no elements, however large the other dimensions are.
  if (std::ranges::find(dims_, 0) != dims_.end()) return 0;
  int64_t count = 1;
  for (int64_t dim : dims_) {
    if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  return count;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (size_t i = 0; i < dims_.size(); ++i) text += (i ? "," : "") + std::to_string(dims_[i]);
  return text + "]";
}

}  // namespace tfjob
