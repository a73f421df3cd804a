#include "runtime/state/peer.h"

#include "runtime/base/status.h"

namespace tfjob::state {

PeerRole RoleOfTask(std::string_view task) {
  return task.starts_with("/job:ps/") ? PeerRole::kServes : PeerRole::kTrains;
}

std::string_view Name(PeerHealth health) {
  switch (health) {
    case PeerHealth::kConnected:
      return "connected";
    case PeerHealth::kSuspected:
      return "suspected";
    case PeerHealth::kStuck:
      return "stuck";
    case PeerHealth::kLost:
      return "lost";
    case PeerHealth::kUnknown:
      break;
  }
  return "unknown";
}

PeerHealth ParsePeerHealth(std::string_view name) {
  for (PeerHealth health :
       {PeerHealth::kConnected, PeerHealth::kSuspected, PeerHealth::kStuck, PeerHealth::kLost}) {
    if (name == Name(health)) return health;
  }
  return PeerHealth::kUnknown;
}

PeerState PeerOf(std::string_view task_type, int task_index) {
  const std::string task = StrCat("/job:", task_type, "/task:", task_index);
  return {.task = task, .role = RoleOfTask(task)};
}

}  // namespace tfjob::state
