// Events that a parameter client or server reports to its process, for the log and for progress.
#pragma once

#include <functional>
#include <string>

#include "runtime/base/clock.h"

namespace tfjob::ps {

struct Event {
  enum class Kind {
    kConnected,   // connected to a peer, or a peer connected to this task
    kSuspected,   // the peer has been silent for 2 s
    kRecovered,   // a suspected peer sent data again
    kLost,        // the peer's connection closed, or its lease of 10 s expired
    kWaiting,     // every 10 s of a wait: the peers and what is awaited from them
    kRestoring,   // the chief refills servers
    kRolledBack,  // the state is that of a checkpoint again
  };
  Kind kind = Kind::kWaiting;
  std::string peer;     // "ps 1"; for a wait, several may be listed, separated by ", "
  std::string address;  // "host:port"; "" if there are several peers
  std::string message;  // a complete sentence that names the peer, its address and what was awaited

  bool operator==(const Event&) const = default;
};

// Called on any thread of this package. Must return quickly and must not call back
// into the package.
using EventSink = std::function<void(const Event&)>;

// The current view of a peer.
struct PeerState {
  std::string task;     // "/job:ps/task:1"
  std::string address;  // "host:port"
  std::string state;    // "connected", "suspected", "lost", "unknown"
  Duration silence{0};
};

}  // namespace tfjob::ps
