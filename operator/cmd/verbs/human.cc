#include "operator/cmd/verbs/human.h"

#include <array>
#include <charconv>

namespace tfjob::cmd {
namespace {

struct Unit {
  std::string_view name;
  Duration value;
};
// Longer names before those that they begin with.
constexpr std::array<Unit, 5> kUnits = {
    {{"ms", 1ms}, {"us", 1us}, {"h", 1h}, {"m", 1min}, {"s", 1s}}};

// "3h4m", "3h" when there is no rest.
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

StatusOr<Duration> ParseDuration(std::string_view text) {
  const auto wrong = [text] {
    return InvalidArgument("expected a duration such as 30s, 5m or 1h30m, got \"", text, "\"");
  };
  if (text == "0") return Duration::zero();
  Duration sum = Duration::zero();
  std::string_view rest = text;
  while (!rest.empty()) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || number < 0 || number > 1'000'000'000) return wrong();
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    const Unit* found = nullptr;
    for (const Unit& unit : kUnits) {
      if (found == nullptr && rest.starts_with(unit.name)) found = &unit;
    }
    if (found == nullptr) return wrong();
    rest.remove_prefix(found->name.size());
    if (number > (Duration::max() - sum) / found->value) return wrong();
    sum += number * found->value;
  }
  if (text.empty()) return wrong();
  return sum;
}

}  // namespace tfjob::cmd
