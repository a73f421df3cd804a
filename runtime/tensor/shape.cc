#include "runtime/tensor/shape.h"

namespace tfjob {

int64_t Shape::num_elements() const {
  int64_t count = 1;
  for (int64_t dim : dims_) count *= dim;
  return count;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (size_t i = 0; i < dims_.size(); ++i) text += (i ? "," : "") + std::to_string(dims_[i]);
  return text + "]";
}

}  // namespace tfjob
