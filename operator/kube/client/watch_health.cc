#include "operator/kube/client/watch_health.h"

#include <utility>

namespace tfjob::kube {

int64_t WatchHealth::Begin(objects::Kind kind, const std::string& name_space) {
  const Duration now = clock_.Monotonic();
  MutexLock lock(mutex_);
  watches_[++last_] = {kind, name_space, false, now, Unavailable("no answer yet")};
  return last_;
}

void WatchHealth::End(int64_t watch) {
  MutexLock lock(mutex_);
  watches_.erase(watch);
}

void WatchHealth::Works(int64_t watch) {
  MutexLock lock(mutex_);
  watches_.at(watch).works = true;
}

void WatchHealth::Fails(int64_t watch, const Status& why) {
  const Duration now = clock_.Monotonic();
  MutexLock lock(mutex_);
  Watch& failed = watches_.at(watch);
  if (std::exchange(failed.works, false)) failed.since = now;
  failed.why = why;
}

void WatchHealth::Progresses(int64_t watch) {
  const Duration now = clock_.Monotonic();
  MutexLock lock(mutex_);
  watches_.at(watch).since = now;
}

std::vector<WatchTrouble> WatchHealth::Troubles() {
  const Duration now = clock_.Monotonic();
  MutexLock lock(mutex_);
  std::vector<WatchTrouble> troubles;
  for (const auto& [number, watch] : watches_) {
    if (watch.works) continue;
    troubles.push_back({watch.kind, watch.name_space, now - watch.since, watch.why});
  }
  return troubles;
}

}  // namespace tfjob::kube
