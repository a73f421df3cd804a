#include "operator/api/indexes.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace tfjob::api {
namespace {

StatusOr<int32_t> ParseIndex(std::string_view digits, std::string_view text) {
  int32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) {
    return InvalidArgument("\"", text, "\" is not a set of indexes such as \"0-3,7\": \"", digits,
                           "\" is not an index");
  }
  return value;
}

}  // namespace

StatusOr<IndexSet> IndexSet::Parse(std::string_view text) {
  IndexSet set;
  if (text.empty()) return set;
  for (size_t start = 0; start <= text.size();) {
    const size_t comma = std::min(text.find(',', start), text.size());
    const std::string_view part = text.substr(start, comma - start);
    start = comma + 1;
    const size_t dash = part.find('-');
    ASSIGN_OR_RETURN(const int32_t first, ParseIndex(part.substr(0, dash), text));
    int32_t last = first;
    if (dash != std::string_view::npos) {
      ASSIGN_OR_RETURN(last, ParseIndex(part.substr(dash + 1), text));
    }
    if (last < first) {
      return InvalidArgument("\"", text, "\" is not a set of indexes such as \"0-3,7\": \"", part,
                             "\" runs backwards");
    }
    set.InsertRange({first, last});
  }
  return set;
}

void IndexSet::Insert(int32_t index) {
  InsertRange({index, index});
}

void IndexSet::InsertRange(Range added) {
  // Compute in 64 bits, because `last` may be the largest int32_t.
  const auto ends_before = [](const Range& range, const Range& next) {
    return int64_t{range.last} + 1 < next.first;
  };
  const auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), added, ends_before);
  const auto end = std::upper_bound(begin, ranges_.end(), added, ends_before);
  if (begin == end) {
    ranges_.insert(begin, added);
    return;
  }
  *begin = {std::min(begin->first, added.first), std::max(std::prev(end)->last, added.last)};
  ranges_.erase(std::next(begin), end);
}

bool IndexSet::Contains(int32_t index) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), index,
                       [](int32_t value, const Range& range) { return value < range.first; });
  return after != ranges_.begin() && index <= std::prev(after)->last;
}

int64_t IndexSet::size() const {
  int64_t size = 0;
  for (const Range& range : ranges_) size += int64_t{range.last} - range.first + 1;
  return size;
}

std::string IndexSet::ToString() const {
  std::string text;
  for (const Range& range : ranges_) {
    if (!text.empty()) text += ',';
    text += StrCat(range.first);
    if (range.last != range.first) text += StrCat("-", range.last);
  }
  return text;
}

}  // namespace tfjob::api
