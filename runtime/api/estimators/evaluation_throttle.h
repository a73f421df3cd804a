// Decides which checkpoints an Estimator evaluates while it trains. Private to this package.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::api {

// As tf.estimator.train_and_evaluate does, evaluates the first checkpoint after the one from which
// training starts, later ones if at least `throttle` has passed since the last evaluation began,
// and always the state of the last step.
class EvaluationThrottle {
 public:
  explicit EvaluationThrottle(Duration throttle) : throttle_(throttle) {}

  // Reports that a run starts or continues at a step.
  void Start(int64_t step) { start_ = step; }
  // Returns whether to evaluate the checkpoint of a step now.
  bool Wants(int64_t step, Duration now) const {
    return step != start_ && (!began_ || now - *began_ >= throttle_);
  }
  // Returns whether the state of the last step has yet to be evaluated.
  bool WantsLast(int64_t step) const { return step != evaluated_; }
  void Began(Duration now) { began_ = now; }
  void Evaluated(int64_t step) { evaluated_ = step; }

 private:
  const Duration throttle_;
  int64_t start_ = 0;
  int64_t evaluated_ = -1;         // the step of the last evaluation
  std::optional<Duration> began_;  // when that evaluation began
};

}  // namespace tfjob::api
