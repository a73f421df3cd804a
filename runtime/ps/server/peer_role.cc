#include "runtime/ps/server/peer_role.h"

#include "runtime/ps/wire.h"

namespace tfjob::ps {

bool MaySend(PeerRole role, uint16_t type) {
  switch (type) {
    case wire::kPush:
    case wire::kPull:
    case wire::kPullRows:
    case wire::kLeave:
    case wire::kFail:
    case wire::kRegister:
    case wire::kAnnounce:
      return role == PeerRole::kChief || role == PeerRole::kTrains;
    case wire::kDefine:
    case wire::kFill:
    case wire::kFilled:
    case wire::kSnapshot:
    case wire::kReadCopy:
    case wire::kDropCopy:
    case wire::kHold:
    case wire::kRelease:
    case wire::kRenew:
    case wire::kTaken:
    case wire::kSetRate:
    case wire::kFinish:
      return role == PeerRole::kChief;
    case wire::kParticipant:
      return role == PeerRole::kServes;
    default:
      return true;
  }
}

}  // namespace tfjob::ps
