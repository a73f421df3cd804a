// Who a task is, and whether two tasks may talk: checked once a connection, in its handshake.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::rpc {

// Grows with every incompatible change of a handshake, a frame or a message.
inline constexpr int32_t kProtocolVersion = 1;

struct Identity {
  std::string job_uid;  // "" outside an operator
  int32_t attempt = 0;
  std::string task_type;  // "worker"
  int32_t task_index = 0;
  // Distinguishes a restarted process from its predecessor: the start time in microseconds, so that
  // later ones are greater.
  int64_t incarnation = 0;

  bool operator==(const Identity&) const = default;
};

// The same task, named as in logs: "worker 1".
std::string TaskName(const Identity& identity);

// FailedPrecondition, naming both sides and what to do, unless both are tasks of one attempt of one
// job and speak one version.
Status CheckPeer(const Identity& self, const Identity& peer, int32_t peer_version);

// The incarnation of a process that starts now.
int64_t NewIncarnation();

}  // namespace tfjob::rpc
