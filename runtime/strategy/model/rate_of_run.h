// Keeps the learning rate that a run has set (Strategy::SetLearningRate).
#pragma once

#include <optional>

#include "runtime/base/status.h"
#include "runtime/state/learning_rate.h"

namespace tfjob::strategy {

// Not thread-safe.
class RateOfRun {
 public:
  // `optimizer` is the optimizer as it was compiled, and must outlive the object.
  explicit RateOfRun(const optimizer::Optimizer& optimizer)
      : compiled_(optimizer.learning_rate), optimizer_(optimizer) {}

  // Returns FailedPrecondition if the optimizer has a schedule, and InvalidArgument if it does not
  // accept the rate.
  Status Set(double rate, int64_t step) {
    RETURN_IF_ERROR(state::CheckMaySet(rate, optimizer_));
    set_ = {.rate = rate, .step = step};
    return OkStatus();
  }
  // Takes over the rate of a snapshot, or of another task. Ignores a rate that the optimizer does
  // not accept: the program has since been given another optimizer, or a schedule.
  void Take(const std::optional<state::LearningRate>& rate) {
    set_ = rate && state::CheckMaySet(rate->rate, optimizer_).ok() ? rate : std::nullopt;
  }

  const std::optional<state::LearningRate>& get() const { return set_; }
  // Returns the rate of the next update if the optimizer has no schedule.
  double rate() const { return set_ ? set_->rate : compiled_; }

 private:
  const double compiled_;
  const optimizer::Optimizer& optimizer_;
  std::optional<state::LearningRate> set_;
};

}  // namespace tfjob::strategy
