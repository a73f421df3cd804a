// Flow control as arithmetic: so many calls a second on average, so many at once.
#pragma once

#include <optional>

#include "runtime/base/clock.h"

namespace tfjob::kube {

// Not thread-safe. Callers are served in the order of their calls.
class TokenBucket {
 public:
  // `rate` tokens a second, at most `burst` saved up; full at the start. `rate` 0: no limit.
  TokenBucket(double rate, int burst);

  // Takes a token that is there or will be: how long the caller has to wait for it. Nothing is
  // taken, and nothing given, when that is longer than `patience`. `now` never goes back.
  std::optional<Duration> Take(Duration now, Duration patience);

 private:
  const double rate_;
  const double burst_;
  double tokens_;  // negative: promised to those who wait
  Duration last_{0};
};

}  // namespace tfjob::kube
