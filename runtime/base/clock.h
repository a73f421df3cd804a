// Defines times, durations and clocks. Code receives the time as an argument, so that tests can
// control it: policies have a parameter `Time now`, loops have a Clock. Wall-clock times are
// formatted as in Kubernetes (RFC 3339, UTC). Durations are measured on the steady clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob {

// Wall-clock time with microsecond resolution. A default-constructed Time is the epoch and
// means "unset".
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;
using Duration = std::chrono::microseconds;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

// Formats whole seconds in the form of metav1.Time: "2026-11-21T09:30:00Z". Returns "" for an unset
// time.
std::string FormatTime(Time time);
// Formats microseconds in the form of metav1.MicroTime: "2026-11-21T09:30:00.123456Z".
std::string FormatMicroTime(Time time);
// Parses the forms that FormatTime and FormatMicroTime return, with any number of fractional digits
// and any UTC offset. Returns InvalidArgument for text in any other form, and for times (in UTC)
// outside the years 0 to 9999.
StatusOr<Time> ParseTime(std::string_view text);
// Truncates the time to whole seconds, the precision of the times that an API server returns.
Time TruncateToSeconds(Time time);
// Formats a duration for humans: "1h2m3s", "250ms".
std::string FormatDuration(Duration duration);

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() = 0;
  // Returns the time since an arbitrary start. It never decreases.
  virtual Duration Monotonic() = 0;
};

// Returns the machine's clock, which exists until the process exits.
Clock& RealClock();

}  // namespace tfjob
