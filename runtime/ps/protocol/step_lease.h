// Decides how long the other workers wait for a connected worker that does not contribute to its
// synchronous step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::ps::protocol {

// A worker loses its token (the request for a batch of the current step) once others have waited
// for its contribution for `factor` × the median step time, and for at least `least`. If `factor`
// is 0, a worker never loses its token.
struct LeaseRule {
  double factor = 10;
  Duration least = std::chrono::seconds(60);
};

// Measures the steps and computes the lease. Not thread-safe. The caller passes in the time.
class StepLease {
 public:
  explicit StepLease(const LeaseRule& rule) : rule_(rule) {}

  // Called periodically with the index of the step in progress. If several steps were completed
  // since the last call, records their mean duration for each of them.
  void Observe(Duration now, int64_t step);
  // Excludes the step in progress from the measurement, because it takes longer for a reason that
  // does not apply to the next step (a hold, a recovery, a stuck worker).
  void Discount() { counts_ = false; }
  // Returns the lease of the step in progress; nullopt if it has no lease. Until a step has been
  // measured, the lease is `least`.
  std::optional<Duration> Length() const;

 private:
  // Returns the median duration of the last steps. With fewer than five completed steps, returns
  // the shortest duration instead, because a single delayed step would distort the median. Returns
  // 0 before the first step is complete.
  Duration Typical() const;

  const LeaseRule rule_;
  std::array<Duration, 31> times_{};  // the durations of the last steps, as a ring
  size_t count_ = 0;                  // the number of steps measured
  int64_t step_ = -1;                 // -1: none observed yet
  Duration since_{0};                 // when step_ was first observed
  bool counts_ = true;
};

}  // namespace tfjob::ps::protocol
