// Lists the examples of a source by length. Batches can then have examples of similar lengths, and
// little padding (operators/bucket_by_length.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tfjob::data {

// Immutable once filled. Uses 4 bytes per example.
class Buckets {
 public:
  static constexpr int64_t kMostRows = int64_t{1} << 32;  // the maximum size of the source

  // `lengths` contains the maximum length of each bucket, in ascending order. A bucket contains the
  // examples that fit into it, but not into the previous bucket.
  explicit Buckets(std::vector<int64_t> lengths)
      : lengths_(std::move(lengths)), rows_(lengths_.size()) {}

  // Adds an example of the source. `length` must not exceed the length of the last bucket.
  void Add(int64_t row, int64_t length) {
    size_t bucket = 0;
    while (lengths_[bucket] < length) ++bucket;
    rows_[bucket].push_back(static_cast<uint32_t>(row));
  }

  const std::vector<int64_t>& lengths() const { return lengths_; }
  size_t count() const { return lengths_.size(); }
  // Returns the number of examples in a bucket.
  int64_t size(size_t bucket) const { return static_cast<int64_t>(rows_[bucket].size()); }
  // Returns example `index` of a bucket, in the order in which the examples were added.
  int64_t Row(size_t bucket, int64_t index) const {
    return rows_[bucket][static_cast<size_t>(index)];
  }

 private:
  std::vector<int64_t> lengths_;
  std::vector<std::vector<uint32_t>> rows_;
};

}  // namespace tfjob::data
