#include "operator/view/duration.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tfjob::view {
namespace {

// The maximum of each number in the text of a duration, and of the total in hours. Duration can
// represent that many hours.
constexpr double kMost = 1e9;

// Returns the microseconds of a unit; 0 if the unit is unknown.
double MicrosecondsOf(std::string_view unit) {
  if (unit == "us") return 1;
  if (unit == "ms") return 1e3;
  if (unit == "s") return 1e6;
  if (unit == "m") return 60e6;
  return unit == "h" ? 3600e6 : 0;
}

}  // namespace

StatusOr<Duration> ParseDuration(std::string_view text) {
  const Status malformed =
      InvalidArgument("expected a duration such as 30s, 5m or 1h30m, got \"", text, "\"");
  if (text.empty()) return malformed;
  if (text == "0") return Duration::zero();
  double sum = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    double count = 0;
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), count, std::chars_format::fixed);
    if (error != std::errc() || !(count >= 0 && count <= kMost)) return malformed;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    const std::string_view unit =
        rest.substr(0, std::min(rest.size(), rest.find_first_of("0123456789.")));
    if (MicrosecondsOf(unit) == 0) return malformed;
    rest.remove_prefix(unit.size());
    sum += count * MicrosecondsOf(unit);
    if (sum > kMost * 3600e6) return malformed;
  }
  return Duration(std::llround(sum));
}

}  // namespace tfjob::view
