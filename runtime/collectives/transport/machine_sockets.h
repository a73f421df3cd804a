// Finds out whether all ranks of a generation run on one machine, and connects them there. This is
// proven, not guessed: host names, addresses and process numbers say nothing, because tasks may run
// in containers.
//
// Every rank listens on an abstract unix socket with a random name, and sends the name and a random
// number to every other rank over their data socket, whose peer the hello has proven. Lower ranks
// dial higher ranks. The caller sends the number that it was given, and gets back the number that
// it gave. Processes in different network namespaces, as in two pods, cannot connect. A stranger on
// the machine may find the name, but not the numbers; a process of another user is refused at once.
//
// Private to this package.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/transport/rank_rounds.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

struct MachineSockets {
  // Why not all ranks are connected; the same text on all ranks, which names one of them.
  Status apart;
  // By rank; the entry of this rank is empty. Unix sockets, non-blocking, on which nothing follows
  // the proofs. Empty unless `apart` is OK.
  std::vector<wire::UniqueFd> sockets;
};

// Called by all ranks. Waits for each step of the others for at most `patience`. Returns the errors
// of RankRounds: the ranks have not agreed.
StatusOr<MachineSockets> ConnectOnMachine(RankRounds& rounds, Duration patience);

// The messages that ranks send over data sockets, and callers over unix sockets.
using MachineNumber = std::array<std::byte, 16>;
struct MachineOffer {
  MachineNumber name;    // of the sender's unix socket
  MachineNumber number;  // that the receiver proves itself with
};
struct MachineProof {
  uint32_t rank = 0;     // of the sender
  MachineNumber number;  // from the receiver's offer to the sender
};

// Returns a unix socket that is connected with the rank of this name.
StatusOr<wire::UniqueFd> DialOnMachine(const MachineNumber& name);

}  // namespace tfjob::collectives
