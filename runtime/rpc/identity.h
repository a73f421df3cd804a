// Defines a task's identity, and decides whether two tasks may communicate. The decision is made
// once per connection, in the handshake.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::rpc {

// Incremented with every incompatible change to the handshake, the frames or the messages.
inline constexpr int32_t kProtocolVersion = 3;

struct Identity {
  std::string job_uid;  // empty if there is no operator
  int32_t attempt = 0;
  std::string task_type;  // "worker"
  int32_t task_index = 0;
  // The start time of the process, in microseconds. It distinguishes a restarted process from its
  // predecessor. Clocks differ, so a higher value does not imply a later start.
  int64_t incarnation = 0;
  // The number of the run among those in which the job's processes take part, one after another.
  int32_t run = 0;

  bool operator==(const Identity&) const = default;
};

// Returns the task's name as shown in logs: "worker 1".
std::string TaskName(const Identity& identity);

// Returns OK if both tasks belong to the same run and attempt of the same job and use the same
// protocol version. Returns Unavailable if only the runs differ, because the task that is behind
// will reach the other's run. Otherwise, returns FailedPrecondition with a message that names both
// tasks and suggests what to do.
Status CheckPeer(const Identity& self, const Identity& peer, int32_t peer_version);

// Returns the incarnation of a process that starts now.
int64_t NewIncarnation();

}  // namespace tfjob::rpc
