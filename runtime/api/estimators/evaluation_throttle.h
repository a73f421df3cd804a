// Decides which checkpoints an Estimator evaluates while it trains. Private to this package.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::api {

// Chooses checkpoints as tf.estimator.train_and_evaluate does: always the first checkpoint after
// the one from which training starts, and the state after the last step. Chooses any other
// checkpoint if at least `throttle` has passed since the start of the previous evaluation.
class EvaluationThrottle {
 public:
  explicit EvaluationThrottle(Duration throttle) : throttle_(throttle) {}

  // Call when a run starts or continues at this step.
  void Start(int64_t step) { start_ = step; }
  // Returns whether the checkpoint of this step should be evaluated now.
  bool Wants(int64_t step, Duration now) const {
    return step != start_ && (!began_ || now - *began_ >= throttle_);
  }
  // Returns whether the state after the last step, `step`, has not been evaluated yet.
  bool WantsLast(int64_t step) const { return step != evaluated_; }
  void Began(Duration now) { began_ = now; }
  void Evaluated(int64_t step) { evaluated_ = step; }

 private:
  const Duration throttle_;
  int64_t start_ = 0;
  int64_t evaluated_ = -1;         // the step of the last evaluation
  std::optional<Duration> began_;  // when that evaluation started
};

}  // namespace tfjob::api
