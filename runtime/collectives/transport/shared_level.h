// Sets up the memory that the ranks on each machine share, for a group on several machines. Private
// to this package.
#pragma once

#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/plan/hosts.h"
#include "runtime/collectives/plan/plan.h"
#include "runtime/collectives/socket/socket_communicator.h"
#include "runtime/collectives/transport/rank_rounds.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

struct LevelAttempt {
  // OK if all ranks have set up their memory; otherwise, the reason, which is equal on all ranks
  // and names one rank.
  Status failed;
  SharedLevel level;  // empty unless `failed` is OK
};

// All ranks of all machines must call this function, with the same machines and costs. `sockets`
// come from ConnectOnMachine. The lowest rank on each machine provides the memory. Each rank writes
// a random number to its part, and sends the number to all others over the data sockets; its
// neighbours look for the number in the memory. If the function returns an error, which comes from
// RankRounds, the ranks have not agreed on a result.
StatusOr<LevelAttempt> MakeSharedLevel(RankRounds& rounds, const Hosts& hosts,
                                       std::vector<wire::UniqueFd> sockets, const Costs& costs,
                                       Duration patience);

}  // namespace tfjob::collectives
