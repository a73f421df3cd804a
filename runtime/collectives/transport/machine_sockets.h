// Determines whether all ranks of a generation run on one machine and, if so, connects them. The
// ranks prove that they share a machine; host names, addresses and process ids would prove nothing,
// because tasks may run in containers.
//
// Every rank listens on an abstract unix socket with a random name. It sends the name and a random
// number to every other rank over the data socket between them. Both ends of a data socket have
// proven their identities in the hello. Lower ranks dial higher ranks. The caller sends the number
// that it received over the data socket, and gets in reply the number that it sent there. Processes
// in different network namespaces, as in two pods, cannot connect. Another process on the machine
// may find out the name, but not the numbers. A process of another user is refused at once.
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
  // OK if all ranks are connected; otherwise, the reason why they are not. The message is the same
  // on all ranks, and names one rank.
  Status apart;
  // By rank; the entry of this rank is empty. Non-blocking unix sockets on which no bytes have been
  // sent after the proofs. Empty unless `apart` is OK.
  std::vector<wire::UniqueFd> sockets;
};

// All ranks must call this function. Each rank may take at most `patience` for a step, and the
// other ranks wait for that rank for at most twice as long. If the function returns an error, which
// comes from RankRounds, the ranks have not agreed on a result.
StatusOr<MachineSockets> ConnectOnMachine(RankRounds& rounds, Duration patience);

// The messages: every rank sends a MachineOffer to every other rank over their data socket. Over a
// unix socket, the caller and the rank that it calls each send a MachineProof.
using MachineNumber = std::array<std::byte, 16>;
struct MachineOffer {
  MachineNumber name;    // the name of the sender's unix socket
  MachineNumber number;  // the number with which the receiver proves itself
};
struct MachineProof {
  uint32_t rank = 0;     // the sender's rank
  MachineNumber number;  // the number in the receiver's offer to the sender
};

// Returns a unix socket that is connected to the rank with this name.
StatusOr<wire::UniqueFd> DialOnMachine(const MachineNumber& name);

}  // namespace tfjob::collectives
