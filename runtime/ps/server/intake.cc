#include "runtime/ps/server/intake.h"

namespace tfjob::ps {

std::unique_ptr<Intake::Slot> Intake::Enter() {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto end = now() + options_.patience;
  MutexLock lock(mutex_);
  uint64_t seen = received_;
  auto look = now() + options_.look_every;
  while (taken_ >= options_.slots && now() < end) {
    if (free_.WaitUntil(mutex_, look) && now() < look) continue;
    if (received_ - seen < options_.busy_bytes) break;
    seen = received_;
    look = now() + options_.look_every;
  }
  ++taken_;
  return std::make_unique<Slot>(shared_from_this());
}

void Intake::Count(uint64_t bytes) {
  MutexLock lock(mutex_);
  received_ += bytes;
}

void Intake::Release() {
  MutexLock lock(mutex_);
  --taken_;
  free_.NotifyOne();
}

}  // namespace tfjob::ps
