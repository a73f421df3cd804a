// Defines memory for the unconverted values of the examples of one batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/row_memory.h"
#include "runtime/data/source.h"

namespace tfjob::data {

// Owned by one thread. All datasets share the memory, which is allocated again for a larger batch.
class StagedRows {
 public:
  // `fields` must outlive this object.
  explicit StagedRows(const std::vector<Field>& fields) : fields_(fields) {}

  // Returns a dataset of `count` examples, with one array per field. Its values are undefined.
  Dataset& For(size_t count) {
    Reserve(count);
    Dataset& dataset = datasets_[count];
    if (!dataset.arrays.empty()) return dataset;
    for (size_t i = 0; i < fields_.size(); ++i) {
      dataset.arrays.push_back(
          {fields_[i].name, fields_[i].file, memory_[i].First(static_cast<int64_t>(count))});
    }
    return dataset;
  }
  // Returns the numbers 0, 1, … of `count` examples. For must have been called with this count.
  std::span<const int64_t> numbers(size_t count) const { return std::span(numbers_).first(count); }

 private:
  void Reserve(size_t count) {
    if (count <= numbers_.size()) return;
    memory_.clear();
    datasets_.clear();
    for (const Field& field : fields_)
      memory_.emplace_back(field.dtype, field.shape, static_cast<int64_t>(count));
    numbers_.resize(count);
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }

  const std::vector<Field>& fields_;
  std::vector<RowMemory> memory_;       // one per field
  std::map<size_t, Dataset> datasets_;  // by the number of examples
  std::vector<int64_t> numbers_;        // 0, 1, …
};

}  // namespace tfjob::data
