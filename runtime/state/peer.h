// Describes the other tasks that a task communicates with: their health, and the events that
// concern them. A strategy reports health and events. The trainer uses these reports for the log,
// for the progress, and to detect the end of the job.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/clock.h"

namespace tfjob::state {

enum class PeerRole {
  kTrains,  // computes gradients
  kServes,  // stores variables for the tasks that train
};
// Returns the role of the task with this name. For example, "/job:ps/task:1" serves.
PeerRole RoleOfTask(std::string_view task);

enum class PeerHealth {
  kConnected,
  kSuspected,  // connected, but silent for 2 s
  kStuck,    // responds, but other tasks have waited too long for it. With parameter servers, they
             // no longer wait for its gradient (its step lease has expired).
  kLost,     // no longer connected
  kUnknown,  // not connected yet
};
std::string_view Name(PeerHealth health);  // "connected"
// Parses a result of Name. Returns kUnknown for any other string.
PeerHealth ParsePeerHealth(std::string_view name);

// The state of a peer, as this task currently sees it.
struct PeerState {
  std::string task;  // "/job:ps/task:1"
  PeerRole role = PeerRole::kTrains;
  std::string address;  // "host:port"
  PeerHealth health = PeerHealth::kUnknown;
  Duration silence{0};

  bool operator==(const PeerState&) const = default;
};
// Returns the state of the task with this type and index, without an address.
PeerState PeerOf(std::string_view task_type, int task_index);

struct PeerEvent {
  enum class Kind {
    kConnected,  // connected to a peer, or a peer connected to this task
    kSuspected,  // the peer has been silent for 2 s
    kRecovered,  // a suspected peer sent data again
    kLost,       // the peer's connection closed, or its lease of 10 s expired
    kWaiting,    // every 10 s during a wait; the message describes the awaited event and the peers
    kRestoring,  // the chief fills servers that have no state
    kStuck,      // other tasks wait for a responding task (PeerHealth::kStuck)
    kReturned,   // a stuck task contributes again
    // A peer was asked to stop. A training task (kEnding) has left, or is about to leave. A server
    // (kServerEnding) keeps its state until the chief has copied it, or until the server must exit.
    kEnding,
    kServerEnding,
    kDropped,   // the tasks that train together continue without the peer, which was lost
    kRejoined,  // a dropped peer trains with them again
    kAbsent,  // training began without the tasks that the message names; "" if all have joined now
  };
  Kind kind = Kind::kWaiting;
  std::string peer;     // "ps 1"; a wait may list several peers, separated by ", "
  std::string address;  // "host:port"; "" if there are several peers
  std::string message;  // a complete sentence that names the peer, its address and the awaited
                        // event

  bool operator==(const PeerEvent&) const = default;
};

// May be called on any thread. Must return quickly, and must not call back into the object that
// reports the events.
using PeerEventSink = std::function<void(const PeerEvent&)>;

}  // namespace tfjob::state
