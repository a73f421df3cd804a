#include "operator/objects/fields.h"

#include <algorithm>

namespace tfjob::objects {
namespace {

// Parses the two digits at `at`; returns -1 if they are not digits.
int Digits(std::string_view text, size_t at) {
  const int high = text[at] - '0';
  const int low = text[at + 1] - '0';
  return high < 0 || high > 9 || low < 0 || low > 9 ? -1 : high * 10 + low;
}

// Parses the form that API servers write, "2026-11-21T09:30:00Z". Returns false for other forms,
// which the full parser handles.
bool ReadPlainTime(std::string_view text, Time& value) {
  if (text.size() != 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':' || text[19] != 'Z') {
    return false;
  }
  const int parts[] = {Digits(text, 0),  Digits(text, 2),  Digits(text, 5), Digits(text, 8),
                       Digits(text, 11), Digits(text, 14), Digits(text, 17)};
  if (std::any_of(std::begin(parts), std::end(parts), [](int part) { return part < 0; })) {
    return false;
  }
  const std::chrono::year_month_day day(std::chrono::year(parts[0] * 100 + parts[1]),
                                        std::chrono::month(static_cast<unsigned>(parts[2])),
                                        std::chrono::day(static_cast<unsigned>(parts[3])));
  if (!day.ok() || parts[4] > 23 || parts[5] > 59 || parts[6] > 59) return false;
  const Time time = std::chrono::sys_days(day) + std::chrono::hours(parts[4]) +
                    std::chrono::minutes(parts[5]) + std::chrono::seconds(parts[6]);
  value = std::max(time, Time());
  return true;
}

}  // namespace

bool ReadTime(std::string_view text, Time& value) {
  if (ReadPlainTime(text, value)) return true;
  const StatusOr<Time> time = ParseTime(text);
  if (!time.ok()) return false;
  value = TruncateToSeconds(std::max(*time, Time()));
  return true;
}

}  // namespace tfjob::objects
