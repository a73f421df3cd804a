// Represents a set of replica indexes, and converts it to and from the text form used in
// status.replicaStatuses[T].completedIndexes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::api {

class IndexSet {
 public:
  IndexSet() = default;

  // Parses "0-3,7". The ranges may overlap and be in any order; "" is the empty set. Returns
  // InvalidArgument for any other text, with a message that says what is wrong.
  static StatusOr<IndexSet> Parse(std::string_view text);

  // Adds `index`, which must be 0 or more. Moves at most the ranges above it, so adding indexes in
  // ascending order is fast.
  void Insert(int32_t index);
  // Returns whether the set contains the index. Takes time logarithmic in the number of ranges.
  bool Contains(int32_t index) const;
  bool empty() const { return ranges_.empty(); }
  int64_t size() const;

  // Prints the indexes in order, with adjacent indexes merged into ranges: "0-3,7".
  std::string ToString() const;

  bool operator==(const IndexSet&) const = default;

 private:
  struct Range {
    int32_t first = 0;
    int32_t last = 0;  // inclusive
    bool operator==(const Range&) const = default;
  };

  void InsertRange(Range added);

  std::vector<Range> ranges_;  // sorted, disjoint, not adjacent
};

}  // namespace tfjob::api
