// Makes seconds as users write them safe to add to a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/clock.h"

namespace tfjob::policy {

// Clamps to between 0 and a hundred years: more means never, less means now.
inline Duration Seconds(int64_t seconds) {
  constexpr int64_t kHundredYears = 100LL * 366 * 24 * 3600;
  return std::chrono::seconds(std::clamp<int64_t>(seconds, 0, kHundredYears));
}

}  // namespace tfjob::policy
