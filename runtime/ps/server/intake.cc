#include "runtime/ps/server/intake.h"

namespace tfjob::ps {

std::unique_ptr<Intake::Slot> Intake::Enter() {
  const auto end = SteadyNow() + options_.patience;
  MutexLock lock(mutex_);
  uint64_t seen = received_;
  auto look = SteadyNow() + options_.look_every;
  while (taken_ >= options_.slots && SteadyNow() < end) {
    if (free_.WaitUntil(mutex_, look) && SteadyNow() < look) continue;
    if (received_ - seen < options_.busy_bytes) break;
    seen = received_;
    look = SteadyNow() + options_.look_every;
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
