// Watches connections for silence: names a peer after 2 s, breaks its connection when its lease of
// 10 s ends.
#pragma once

#include <functional>
#include <list>
#include <thread>

#include "runtime/base/mutex.h"
#include "runtime/rpc/connection.h"
#include "runtime/rpc/liveness.h"

namespace tfjob::rpc {

// One thread, which looks eight times in the time to suspicion. Thread-safe.
class PeerWatch {
 public:
  struct Watched {
    Connection* connection = nullptr;
    // The connection's Run returns Unavailable with this at its beginning when the lease ends.
    std::string peer;  // "ps 1 (127.0.0.1:2223)"
    // Called on the watching thread when the peer falls silent (kSuspected) and speaks again
    // (kAlive), with its silence. May not call the watch.
    std::function<void(Health, Duration)> on_change;
  };

  // `on_tick`, when given, is called at every look.
  explicit PeerWatch(std::function<void()> on_tick = nullptr, LivenessRules rules = {});
  ~PeerWatch();

  using Ticket = const void*;
  Ticket Add(Watched watched);
  // Afterwards the connection is not touched any more.
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
  std::thread thread_;
};

}  // namespace tfjob::rpc
