// Implements a communicator over one connected stream socket per other rank. If several ranks run
// on one machine and share memory there, AllReduce may take place in two levels (plan.h). The
// thread that calls an operation moves the bytes itself and sleeps in poll: there is no other
// thread, no spinning, and no allocation once an operation's plan exists (plan.h).
//
// When a rank closes its connection, an operation that still needs that rank fails at once. A rank
// that fails sends the reason to the others, unless it is in the middle of sending a frame; in that
// case, they see only a closed connection. If ranks call different operations, they get an error
// that names both calls, because every frame contains its sender's call, and a rank that has been
// waiting for a long time announces its call to the others.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/plan/plan.h"
#include "runtime/collectives/shared/shared_space.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

// The machines of the ranks, and the memory that this rank shares with its neighbours, the other
// ranks on its machine.
struct SharedLevel {
  Hosts hosts;  // of all ranks, or unknown; equal on all ranks
  // In `space`, ranks are counted within the machine (Hosts::PlaceOf). Null if this rank has no
  // neighbours, or if nothing is known about the machines.
  std::unique_ptr<SharedSpace> space;
  // Memory from `space` for spans that are not in shared memory, at least two chunks (Costs). Null
  // if `space` is null.
  std::unique_ptr<Communicator::Memory> window;
};

struct SocketCommunicatorOptions {
  int rank = 0;
  // One socket per rank, connected to that rank; this rank's own entry is not used.
  std::vector<wire::UniqueFd> sockets;
  // The name of each rank's task ("worker 1"), for error messages. May be empty.
  std::vector<std::string> tasks;
  Costs costs;  // equal on all ranks
  SharedLevel shared;
  // Forces this algorithm for AllReduce; equal on all ranks. An AllReduce returns InvalidArgument
  // if the algorithm is not suitable for it (CheckAlgorithm).
  std::optional<Algorithm> all_reduce;
  SumOrder order = SumOrder::kTree;  // equal on all ranks
  // A rank that has waited for this long in an operation announces the call to the others.
  Duration announce_after{1s};
};

class SocketCommunicator : public Communicator {
 public:
  // Returns the communicator's error, or the error that another rank has reported since the last
  // operation. Returns Unavailable, with the rank, if a rank has closed its connection without a
  // reason. A rank that has left is no error. Never waits. May be called only by the thread that
  // calls operations, between two of them. Does not end the communicator: call Abort for that.
  virtual Status CheckPeers() = 0;
};

// Returns an error if the system cannot provide an eventfd.
StatusOr<std::unique_ptr<SocketCommunicator>> MakeSocketCommunicator(
    SocketCommunicatorOptions options);

}  // namespace tfjob::collectives
