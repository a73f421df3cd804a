// Finds out which ranks of a generation run on the same machine, and connects these ranks. The
// ranks prove that they share a machine; host names, addresses and process ids would prove nothing,
// because tasks may run in containers.
//
// Every rank listens on an abstract unix socket with a random name. It sends the name and a random
// number to every other rank over the data socket between them. Both ends of a data socket have
// proven their identities in the hello. Lower ranks dial higher ranks. Processes in different
// network namespaces, as in two pods, cannot connect. Every rank tells all others which ranks it
// reached, so that all ranks know the same machines. The caller sends the number that it received
// over the data socket, and gets in reply the number that it sent there.
// Another process on the machine may find out the name, but not the numbers. A process of another
// user is refused at once.
//
// Private to this package.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/plan/hosts.h"
#include "runtime/collectives/transport/rank_rounds.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

// The largest number of ranks whose machines can be found.
inline constexpr int kMostPlacedRanks = 1024;

struct MachineSockets {
  // OK if the machines are known; otherwise, the reason why they are not. The message is the same
  // on all ranks, and names one rank.
  Status failed;
  Hosts hosts;  // equal on all ranks; unknown unless `failed` is OK
  // OK if all ranks run on one machine; otherwise, the reason why one rank cannot share memory with
  // another one. The message is the same on all ranks, and names both.
  Status apart;
  // By rank; empty for this rank and for the ranks of other machines. Non-blocking unix sockets on
  // which no bytes have been sent after the proofs. Empty unless `failed` is OK.
  std::vector<wire::UniqueFd> sockets;
};

// Returns whether a rank may look for another rank on its machine. For tests, in which all ranks
// run in one process.
using MayShare = std::function<bool(int rank, int other)>;

// All ranks must call this function; there are at most kMostPlacedRanks. Each rank may take at most
// `patience` for a step, and the other ranks wait for that rank for at most twice as long. If the
// function returns an error, which comes from RankRounds, the ranks have not agreed on a result.
StatusOr<MachineSockets> ConnectOnMachine(RankRounds& rounds, Duration patience,
                                          const MayShare& may_share = nullptr);

// How an attempt to dial a rank ended.
enum class Reach : uint8_t { kNotTried, kReached, kOtherNamespace, kOtherUser };
// Returns the machines, given the results of all attempts: reached[a][b] for a < b. A rank runs on
// the machine of the lowest rank that, together with all ranks placed there before, can reach it.
Hosts MachinesOf(const std::vector<std::vector<Reach>>& reached);

// The messages: every rank sends a MachineOffer to every other rank over their data socket, and
// then a MachineRow and, once it knows the machines, a MachineList. Over a unix socket, the caller
// and the rank that it calls each send a MachineProof.
using MachineNumber = std::array<std::byte, 16>;
struct MachineOffer {
  MachineNumber name;    // the name of the sender's unix socket
  MachineNumber number;  // the number that the receiver proves itself with
};
struct MachineRow {
  std::array<Reach, kMostPlacedRanks> reached{};  // by rank; for ranks above the sender's
};
struct MachineList {
  std::array<uint16_t, kMostPlacedRanks> machine_of{};  // by rank
  bool operator==(const MachineList&) const = default;
};
struct MachineProof {
  uint32_t rank = 0;     // the sender's rank
  MachineNumber number;  // the number in the receiver's offer to the sender
};

// Returns a unix socket that is connected to the rank with this name.
StatusOr<wire::UniqueFd> DialOnMachine(const MachineNumber& name);

}  // namespace tfjob::collectives
