// Decides how the process ends after a stop request: its exit code, how long calls may take, and in
// which order they are cancelled. Pure.
#pragma once

#include <vector>

#include "runtime/base/clock.h"

namespace tfjob::service {

// The reasons passed to StopSource::Request other than signals. Signals are positive, so these are
// negative.
inline constexpr int kLeaseLost = -1;
inline constexpr int kGivenUp = -2;
inline constexpr int kMisconfigured = -3;

enum class CancelCalls { kOfLoop, kOfLease };

struct DepartureStep {
  Duration after{0};  // since the stop request; the step is skipped if everything has ended
  CancelCalls cancel = CancelCalls::kOfLoop;

  bool operator==(const DepartureStep&) const = default;
};

struct Departure {
  int exit_code = 0;
  std::vector<DepartureStep> steps;  // in order of time
  Duration events_may_take{0};       // time limit for sending the events recorded so far

  bool operator==(const Departure&) const = default;
};

// Plans the departure. `reason` is a signal or one of the constants above. If the lease was lost,
// this process must no longer write, so all calls are cancelled immediately. Otherwise, calls for
// the lease get more time than other calls, because the lease is released last.
Departure PlanDeparture(int reason);

}  // namespace tfjob::service
