#include "runtime/ps/server/peer_role.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

constexpr PeerRole kRoles[] = {PeerRole::kChief, PeerRole::kTrains, PeerRole::kServes,
                               PeerRole::kNone};

TEST(MaySend, GivesEachTypeToTheRolesThatNeedIt) {
  const std::set<uint16_t> chief = {
      wire::kDefine, wire::kFill,  wire::kFilled, wire::kSnapshot, wire::kHold,     wire::kRelease,
      wire::kFinish, wire::kRenew, wire::kTaken,  wire::kReadCopy, wire::kDropCopy, wire::kSetRate};
  const std::set<uint16_t> trains = {wire::kPush, wire::kPull,     wire::kPullRows, wire::kLeave,
                                     wire::kFail, wire::kRegister, wire::kAnnounce};
  // Includes the types that only servers send, and types that do not exist.
  for (uint16_t type = 0; type < 100; ++type) {
    std::set<PeerRole> may(std::begin(kRoles), std::end(kRoles));
    if (chief.contains(type)) may = {PeerRole::kChief};
    if (trains.contains(type)) may = {PeerRole::kChief, PeerRole::kTrains};
    if (type == wire::kParticipant) may = {PeerRole::kServes};
    for (PeerRole role : kRoles) {
      EXPECT_EQ(MaySend(role, type), may.contains(role))
          << "type " << type << ", role " << static_cast<int>(role);
    }
  }
}

}  // namespace
}  // namespace tfjob::ps
