#include "runtime/base/clock.h"

#include <cinttypes>
#include <cstdio>

#include "absl/time/time.h"
#include "runtime/base/scheduler.h"

namespace tfjob {
namespace {

absl::Time ToAbsl(Time time) {
  return absl::FromUnixMicros(time.time_since_epoch().count());
}

std::string Format(const char* format, Time time) {
  if (time == Time()) return "";
  return absl::FormatTime(format, ToAbsl(time), absl::UTCTimeZone());
}

class SystemClock : public Clock {
 public:
  Time Now() override {
    Scheduler* scheduler = Scheduler::Installed();
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        scheduler != nullptr ? scheduler->WallNow() : std::chrono::system_clock::now());
  }
  Duration Monotonic() override {
    return std::chrono::duration_cast<Duration>(SteadyNow().time_since_epoch());
  }
};

}  // namespace

std::string FormatTime(Time time) {
  return Format("%E4Y-%m-%d%ET%H:%M:%SZ", time);
}

std::string FormatMicroTime(Time time) {
  return Format("%E4Y-%m-%d%ET%H:%M:%E6SZ", time);
}

StatusOr<Time> ParseTime(std::string_view text) {
  // Do not use absl::RFC3339_full, which accepts years of any length.
  constexpr char kFormat[] = "%E4Y-%m-%d%ET%H:%M:%E*S%Ez";
  absl::Time time;
  std::string error;
  // Require a digit first, because absl::ParseTime skips white space, and accepts "infinite-future"
  // and years such as -999.
  const bool starts_with_digit = !text.empty() && text[0] >= '0' && text[0] <= '9';
  if (!starts_with_digit || !absl::ParseTime(kFormat, internal::Piece(text), &time, &error)) {
    return InvalidArgument("'", text, "' is not an RFC 3339 time: ", error);
  }
  // Check the year in UTC, because the year might no longer have four digits once the offset is
  // applied.
  static const absl::Time kFirst = absl::FromCivil(absl::CivilYear(0), absl::UTCTimeZone());
  static const absl::Time kEnd = absl::FromCivil(absl::CivilYear(10'000), absl::UTCTimeZone());
  if (time < kFirst || time >= kEnd) {
    return InvalidArgument("'", text, "' is not an RFC 3339 time: not in the years 0 to 9999");
  }
  return Time(std::chrono::microseconds(absl::ToUnixMicros(time)));
}

Time TruncateToSeconds(Time time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

std::string FormatDuration(Duration duration) {
  return absl::FormatDuration(absl::Microseconds(duration.count()));
}

Clock& RealClock() {
  static SystemClock clock;
  return clock;
}

}  // namespace tfjob
