// Watches connections for silence. By default, reports a peer after 2 s of silence and breaks its
// connection after 10 s, when its lease expires.
#pragma once

#include <functional>
#include <list>

#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/rpc/connection.h"
#include "runtime/rpc/liveness.h"

namespace tfjob::rpc {

// Runs one thread, which checks all connections eight times per
// LivenessRules::suspect_after. Thread-safe.
class PeerWatch {
 public:
  struct Watched {
    Connection* connection = nullptr;
    // The peer's name. When the lease expires, the connection's Run returns Unavailable with a
    // message that starts with this name.
    std::string peer;  // "ps 1 (127.0.0.1:2223)"
    // Called on the watching thread when the peer becomes silent (kSuspected) and when it is heard
    // from again (kAlive), with the duration of the silence. Must not call the watch.
    std::function<void(Health, Duration)> on_change;
  };

  // `on_tick`, if given, is called after every check, and may call the watch.
  explicit PeerWatch(std::function<void()> on_tick = nullptr, LivenessRules rules = {});
  ~PeerWatch();

  using Ticket = const void*;
  Ticket Add(Watched watched);
  // After Remove returns, the watch no longer uses the connection.
  void Remove(Ticket ticket);

 private:
  struct Entry {
    Watched watched;
    Health health = Health::kAlive;
  };
  void Loop();
  void Look(Entry& entry) const;

  const std::function<void()> on_tick_;
  const LivenessRules rules_;
  Mutex mutex_;
  CondVar wake_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace tfjob::rpc
