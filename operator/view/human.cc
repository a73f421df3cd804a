#include "operator/view/human.h"

namespace tfjob::view {
namespace {

// Returns "3h4m", or "3h" if the second number is 0.
std::string Parts(int64_t whole, const char* unit, int64_t rest, const char* rest_unit) {
  return rest == 0 ? StrCat(whole, unit) : StrCat(whole, unit, rest, rest_unit);
}

}  // namespace

std::string HumanDuration(Duration duration) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  const int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24, years = days / 365;
  if (seconds < 0) return "0s";
  if (minutes < 2) return StrCat(seconds, "s");
  if (minutes < 10) return Parts(minutes, "m", seconds % 60, "s");
  if (hours < 3) return StrCat(minutes, "m");
  if (hours < 8) return Parts(hours, "h", minutes % 60, "m");
  if (hours < 48) return StrCat(hours, "h");
  if (days < 8) return Parts(days, "d", hours % 24, "h");
  if (years < 2) return StrCat(days, "d");
  if (years < 8) return Parts(years, "y", days % 365, "d");
  return StrCat(years, "y");
}

std::string HumanAge(Time then, Time now) {
  return then == Time() ? "<unknown>" : HumanDuration(now - then);
}

}  // namespace tfjob::view
