#include "runtime/rpc/peer_watch.h"

namespace tfjob::rpc {
PeerWatch::PeerWatch(std::function<void()> on_tick, LivenessRules rules)
    : on_tick_(std::move(on_tick)), rules_(rules) {
  thread_ = Thread("peer-watch", [this] { Loop(); });
}

PeerWatch::~PeerWatch() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.NotifyOne();
  }
  thread_.Join();
}

PeerWatch::Ticket PeerWatch::Add(Watched watched) {
  MutexLock lock(mutex_);
  return &entries_.emplace_back(Entry{std::move(watched)});
}

void PeerWatch::Remove(Ticket ticket) {
  // Loop holds the lock while it uses an entry, so this entry is not in use now.
  MutexLock lock(mutex_);
  entries_.remove_if([&](const Entry& entry) { return &entry == ticket; });
}

void PeerWatch::Look(Entry& entry) const {
  const Duration silence = entry.watched.connection->Silence();
  const Health health = rules_.Judge(silence);
  if (health == entry.health) return;
  entry.health = health;
  if (health == Health::kLost) {
    entry.watched.connection->Cancel(
        Unavailable(entry.watched.peer, " gave no sign of life for ", FormatDuration(silence)));
  } else if (entry.watched.on_change) {
    entry.watched.on_change(health, silence);
  }
}

void PeerWatch::Loop() {
  const Duration interval = rules_.suspect_after / 8;
  Duration looked = RealClock().Monotonic();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!stopping_) wake_.WaitFor(mutex_, interval);
      if (stopping_) return;
      // If this process has been paused (stopped, or given no CPU time), every peer appears silent.
      // In that case, skip one check, so that the readers can catch up.
      const Duration now = RealClock().Monotonic();
      const bool paused = now - looked >= rules_.suspect_after;
      looked = now;
      for (Entry& entry : entries_) {
        if (!paused) Look(entry);
      }
    }
    // Call on_tick_ without the lock, so that it may call the watch.
    if (on_tick_) on_tick_();
  }
}

}  // namespace tfjob::rpc
