// Accumulates the numbers for the next report: the loss and metrics of this task's batches, the
// rate of global steps, the mean staleness of this task's gradients, and how many of them were
// dropped.
#pragma once

#include <cstdint>

#include "runtime/base/clock.h"
#include "runtime/strategy/strategy.h"

namespace tfjob::train {

class ReportWindow {
 public:
  explicit ReportWindow(Clock& clock) : clock_(clock) {}

  // Starts a new window at `step`.
  void Reset(int64_t step) {
    start_step_ = step;
    start_ = clock_.Monotonic();
    totals_.loss_sum = 0;
    totals_.examples = 0;
    for (double& sum : totals_.metric_sums) sum = 0;
    staleness_ = steps_ = dropped_ = 0;
  }

  void Add(const strategy::MetricTotals& batch, const strategy::StepOutcome& outcome) {
    totals_.Add(batch);
    if (!outcome.dropped) staleness_ += outcome.staleness;
    dropped_ += outcome.dropped ? 1 : 0;
    ++steps_;
  }

  int64_t start_step() const { return start_step_; }
  Duration age() const { return clock_.Monotonic() - start_; }
  const strategy::MetricTotals& totals() const { return totals_; }
  int64_t dropped() const { return dropped_; }
  double mean_staleness() const {
    const int64_t used = steps_ - dropped_;
    return used == 0 ? 0 : static_cast<double>(staleness_) / static_cast<double>(used);
  }
  double StepsPerSecond(int64_t step) const {
    const double seconds = static_cast<double>(age().count()) / 1e6;
    return seconds <= 0 ? 0 : static_cast<double>(step - start_step_) / seconds;
  }

 private:
  Clock& clock_;
  int64_t start_step_ = 0;
  Duration start_{0};
  strategy::MetricTotals totals_;
  int64_t staleness_ = 0;
  int64_t steps_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace tfjob::train
