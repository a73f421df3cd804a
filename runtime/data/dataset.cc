#include "runtime/data/dataset.h"

namespace tfjob::data {

Shape Dataset::feature_shape() const {
  const std::vector<int64_t>& dims = features.shape().dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

}  // namespace tfjob::data
