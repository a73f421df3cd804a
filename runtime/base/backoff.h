// Computes exponential backoff, without reading a clock or sleeping.
#pragma once

#include "runtime/base/clock.h"

namespace tfjob {

struct BackoffPolicy {
  Duration initial{5ms};
  Duration maximum{1000s};
  double factor = 2.0;
  double jitter = 0.0;  // a delay d becomes d * (1 + jitter * u), with u uniform in [0, 1)
};

// Returns the delay before retry number `failures`, without jitter: 0 if `failures` is 0 or less,
// `initial` for 1, initial * factor for 2, and so on, up to `maximum`.
Duration BackoffDelay(const BackoffPolicy& policy, int failures);
// Like the overload above, but with jitter; the result may exceed `maximum`. `uniform` is a random
// number in [0, 1).
Duration BackoffDelay(const BackoffPolicy& policy, int failures, double uniform);

}  // namespace tfjob
