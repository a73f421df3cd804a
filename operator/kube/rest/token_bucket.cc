#include "operator/kube/rest/token_bucket.h"

#include <algorithm>

namespace tfjob::kube {

TokenBucket::TokenBucket(double rate, int burst)
    : rate_(rate), burst_(std::max(1, burst)), tokens_(burst_) {}

std::optional<Duration> TokenBucket::Take(Duration now, Duration patience) {
  if (rate_ <= 0) return Duration(0);
  const double elapsed = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  tokens_ = std::min(burst_, tokens_ + std::max(0.0, elapsed) * rate_);
  const double missing = std::max(0.0, 1 - tokens_);
  const auto wait = std::chrono::round<Duration>(std::chrono::duration<double>(missing / rate_));
  if (wait > patience) return std::nullopt;
  tokens_ -= 1;
  return wait;
}

}  // namespace tfjob::kube
