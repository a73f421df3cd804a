#include "operator/kube/leader/leadership.h"

namespace tfjob::kube {

bool Leadership::held() const {
  const int64_t until = until_.load(std::memory_order_acquire);
  return until > 0 && clock_.Monotonic().count() < until;
}

bool Leadership::Extend(Duration until) {
  int64_t known = until_.load(std::memory_order_acquire);
  do {
    const int64_t now = clock_.Monotonic().count();
    if (known == kEnded || (known != kNever && now >= known) || now >= until.count()) return false;
  } while (!until_.compare_exchange_weak(known, until.count(), std::memory_order_acq_rel));
  return true;
}

void Leadership::End() {
  until_.store(kEnded, std::memory_order_release);
}

}  // namespace tfjob::kube
