// What a client or a server of the parameter room has to tell its process, for the log and for
// progress.
#pragma once

#include <functional>
#include <string>

#include "runtime/base/clock.h"

namespace tfjob::ps {

struct Event {
  enum class Kind {
    kConnected,   // to a peer, or a peer to us
    kSuspected,   // silent for 2 s
    kRecovered,   // spoke again
    kLost,        // its connection closed, or its lease of 10 s ended
    kWaiting,     // every 10 s of a wait: whom for and what for
    kRestoring,   // the chief refills servers
    kRolledBack,  // the state is that of a checkpoint again
  };
  Kind kind = Kind::kWaiting;
  std::string peer;     // "ps 1"; several, separated by ", ", for a wait
  std::string address;  // "host:port"; "" when there are several peers
  std::string message;  // a whole sentence that names peer, address and what was awaited

  bool operator==(const Event&) const = default;
};

// Called on any thread of the room; quick, and may not call back.
using EventSink = std::function<void(const Event&)>;

// A peer as it is seen now.
struct PeerState {
  std::string task;     // "/job:ps/task:1"
  std::string address;  // "host:port"
  std::string state;    // "connected", "suspected", "lost", "unknown"
  Duration silence{0};
};

}  // namespace tfjob::ps
