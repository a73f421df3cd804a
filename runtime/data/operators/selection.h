// Selects a range of examples, and repeats it, as tf.data's skip, take and repeat do.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::data {

// The options are applied in this order.
struct SelectOptions {
  int64_t skip = 0;    // the number of examples to skip at the beginning; at least 0
  int64_t take = -1;   // the maximum number of examples to keep; -1: all
  int64_t repeat = 1;  // at least 1
  bool operator==(const SelectOptions&) const = default;
};

class Selection {
 public:
  static constexpr int64_t kMost = int64_t{1} << 48;  // the maximum number of examples

  // Creates a selection from a source of `size` examples. Returns InvalidArgument if an option is
  // out of range, if no example is left, or if the selection has more than kMost examples.
  static StatusOr<Selection> Create(const SelectOptions& options, int64_t size);

  int64_t size() const { return count_ * repeat_; }
  // Returns the position that example `index` has in the source; `index` is in [0, size()).
  int64_t At(int64_t index) const { return skip_ + index % count_; }
  // Returns text such as "the examples 10 to 109 of 500, 2 times".
  std::string Describe() const;

 private:
  Selection(int64_t skip, int64_t count, int64_t repeat, int64_t of)
      : skip_(skip), count_(count), repeat_(repeat), of_(of) {}

  int64_t skip_, count_, repeat_;
  int64_t of_;  // the size of the source
};

}  // namespace tfjob::data
