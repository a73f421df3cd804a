#include "runtime/data/operators/selection.h"

#include <algorithm>

namespace tfjob::data {

StatusOr<Selection> Selection::Create(const SelectOptions& options, int64_t size) {
  const auto& [skip, take, repeat] = options;
  if (skip < 0) return InvalidArgument("skip: expected at least 0, got ", skip);
  if (skip >= size) {
    return InvalidArgument("skip: expected fewer than the ", size, " examples that there are, got ",
                           skip);
  }
  if (take == 0 || take < -1)
    return InvalidArgument("take: expected at least 1, or -1 for all examples, got ", take);
  if (repeat < 1) return InvalidArgument("repeat: expected at least 1, got ", repeat);
  const int64_t left = size - skip;
  const int64_t count = take < 0 ? left : std::min(take, left);
  if (count > kMost) {
    return InvalidArgument("expected at most ", kMost, " examples, got ", count,
                           "; take fewer of them");
  }
  if (repeat > kMost / count) {
    return InvalidArgument("repeat: expected at most ", kMost, " examples in all, got ", repeat,
                           " times ", count);
  }
  return Selection(skip, count, repeat, size);
}

std::string Selection::Describe() const {
  std::string text = count_ == of_
                         ? StrCat("the ", of_, " examples")
                         : StrCat("the examples ", skip_, " to ", skip_ + count_ - 1, " of ", of_);
  if (repeat_ > 1) text += StrCat(", ", repeat_, " times");
  return text;
}

}  // namespace tfjob::data
