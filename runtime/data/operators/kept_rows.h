// Numbers the examples that a filter keeps. Uses one bit per example of the source, plus an eighth
// of a bit for an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tfjob::data {

class KeptRows {
 public:
  // Creates an empty set for a source of `rows` examples.
  explicit KeptRows(int64_t rows) : words_(static_cast<size_t>((rows + 63) / 64)) {}

  // Marks an example as kept. Two threads may call this function at the same time if their values
  // of row / 64 differ.
  void Keep(int64_t row) { words_[static_cast<size_t>(row / 64)] |= uint64_t{1} << (row % 64); }
  // Builds the index. Must be called after the last Keep, and before the functions below.
  void Index();

  int64_t size() const { return size_; }
  // Returns the row of kept example `index`; `index` is in [0, size()).
  int64_t At(int64_t index) const;
  size_t bytes() const { return (words_.size() + counts_.size()) * sizeof(uint64_t); }
  // Returns a hash of the rows that are kept.
  uint64_t hash() const;

 private:
  static constexpr size_t kWordsPerCount = 8;

  std::vector<uint64_t> words_;
  std::vector<int64_t> counts_;  // kept examples before each group of kWordsPerCount words
  int64_t size_ = 0;
};

}  // namespace tfjob::data
