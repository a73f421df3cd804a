#include "runtime/ps/protocol/step_lease.h"

#include <algorithm>

namespace tfjob::ps::protocol {

void StepLease::Observe(Duration now, int64_t step) {
  if (step == step_) return;
  if (step > step_ && step_ >= 0 && counts_) {
    const int64_t ended = step - step_;
    const Duration each = (now - since_) / ended;
    for (int64_t i = 0; i < std::min<int64_t>(ended, times_.size()); ++i)
      times_[count_++ % times_.size()] = each;
  }
  step_ = step;
  since_ = now;
  counts_ = true;
}

Duration StepLease::Typical() const {
  std::array<Duration, 31> sorted = times_;
  const size_t known = std::min(count_, sorted.size());
  if (known == 0) return Duration(0);
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(known < 5 ? 0 : known / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<ptrdiff_t>(known));
  return *middle;
}

std::optional<Duration> StepLease::Length() const {
  if (rule_.factor <= 0) return std::nullopt;
  constexpr double kMost = 1e15;  // microseconds
  const double wanted = rule_.factor * static_cast<double>(Typical().count());
  return std::max(rule_.least, Duration(static_cast<int64_t>(std::min(wanted, kMost))));
}

}  // namespace tfjob::ps::protocol
