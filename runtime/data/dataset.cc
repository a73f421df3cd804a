#include "runtime/data/dataset.h"

#include <algorithm>

namespace tfjob::data {

Shape Array::example_shape() const {
  const std::vector<int64_t>& dims = values.shape().dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

const Array* Dataset::Find(std::string_view name) const {
  const auto found = std::ranges::find(arrays, name, &Array::name);
  return found == arrays.end() ? nullptr : &*found;
}

std::string Dataset::Place(const Array& array, int64_t index) const {
  return place ? place(index) : StrCat(array.file, ": ", row_name, " ", first_row + index);
}

}  // namespace tfjob::data
