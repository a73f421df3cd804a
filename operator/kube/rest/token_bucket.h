// Flow control as pure arithmetic: limits the average rate of calls and the size of bursts.
#pragma once

#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::kube {

// Not thread-safe. Callers are served in the order of their calls.
class TokenBucket {
 public:
  // `rate` tokens per second, at most `burst` saved up; starts full. `rate` 0: no limit.
  TokenBucket(double rate, int burst);

  // Takes a token that is available now or later and returns how long the caller must wait for it.
  // Returns nullopt and takes nothing if the wait is longer than `patience`. `now` never goes back.
  std::optional<Duration> Take(Duration now, Duration patience);

 private:
  const double rate_;
  const double burst_;
  double tokens_;  // negative: promised to waiting callers
  Duration last_{0};
};

}  // namespace tfjob::kube
