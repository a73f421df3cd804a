// Time as an argument. Policies take `Time now`; loops take a Clock. Wall-clock times are what
// Kubernetes stores (RFC 3339, UTC); durations are measured on the steady clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace tfjob {

// Wall-clock time with microsecond resolution. A default-constructed Time is the epoch and means
// "unset".
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;
using Duration = std::chrono::microseconds;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

// "2026-11-21T09:30:00Z": seconds, as metav1.Time. An unset time gives "".
std::string FormatTime(Time time);
// "2026-11-21T09:30:00.123456Z": as metav1.MicroTime.
std::string FormatMicroTime(Time time);
// Reads both forms, with any fraction and with offsets.
StatusOr<Time> ParseTime(std::string_view text);
// The time cut to whole seconds, as it will read back from an API server.
Time TruncateToSeconds(Time time);
// "1h2m3s", "250ms": for people.
std::string FormatDuration(Duration duration);

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() = 0;
  // Steady time since some start; never goes back.
  virtual Duration Monotonic() = 0;
};

// The machine's clock; lives for ever.
Clock& RealClock();

// A clock that a test moves by hand. Both times advance together. Thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(Time start) : now_(start) {}
  Time Now() override;
  Duration Monotonic() override;
  void Advance(Duration by);

 private:
  Mutex mutex_;
  Time now_ ABSL_GUARDED_BY(mutex_);
  Duration elapsed_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace tfjob
