// Limits the average rate of calls and the size of bursts. Pure arithmetic.
#pragma once

#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::kube {

// Distributes tokens to callers in the order of their calls. Not thread-safe.
class TokenBucket {
 public:
  // The bucket gains `rate` tokens per second, contains at most `burst`, and starts full. If `rate`
  // is 0, there is no limit.
  TokenBucket(double rate, int burst);

  // Reserves a token that is available now or later, and returns how long the caller must wait for
  // it. If the wait is longer than `patience`, reserves no token and returns nullopt. `now` must
  // not decrease from call to call.
  std::optional<Duration> Take(Duration now, Duration patience);

 private:
  const double rate_;
  const double burst_;
  double tokens_;  // negative: promised to waiting callers
  Duration last_{0};
};

}  // namespace tfjob::kube
