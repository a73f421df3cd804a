// Decides how long the others wait for a worker that is connected but does not contribute to its
// synchronous step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::ps::protocol {

// A worker loses its token (the request for a batch of the current step) once others have waited
// for its contribution for `factor` × the median step time, but never earlier than after `least`.
// With the factor 0, it never loses it.
struct LeaseRule {
  double factor = 10;
  Duration least = std::chrono::seconds(60);
};

// Measures the steps and computes the lease. Not thread-safe. The caller passes in the time.
class StepLease {
 public:
  explicit StepLease(const LeaseRule& rule) : rule_(rule) {}

  // Called periodically with the number of the step in progress. If several steps have ended since
  // the last call, each counts with their mean time.
  void Observe(Duration now, int64_t step);
  // The step in progress takes longer for a reason that says nothing about the next one (a hold, a
  // recovery, a stuck worker), so it does not count.
  void Discount() { counts_ = false; }
  // Returns the lease of the step in progress; nullopt if there is none. Until a step has been
  // measured, it is `least`.
  std::optional<Duration> Length() const;

 private:
  // Returns the median of the last steps. While there are fewer than five, one that was held up
  // would count too much, so this is the shortest; 0 before the first one.
  Duration Typical() const;

  const LeaseRule rule_;
  std::array<Duration, 31> times_{};  // of the last steps, as a ring
  size_t count_ = 0;                  // of all steps measured
  int64_t step_ = -1;                 // -1: none observed yet
  Duration since_{0};                 // when it was first observed
  bool counts_ = true;
};

}  // namespace tfjob::ps::protocol
