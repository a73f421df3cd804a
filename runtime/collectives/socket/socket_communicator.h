// Implements a communicator over one connected stream socket per other rank. The thread that calls
// an operation moves the bytes itself and sleeps in poll: there is no other thread, no spinning,
// and no allocation once an operation's plan exists (plan.h).
//
// When a rank closes its connection, an operation that still needs that rank fails at once. A rank
// that fails sends the reason to the others, unless it is in the middle of sending a frame; in that
// case, they see only a closed connection. If ranks call different operations, they get an error
// that names both calls, because every frame contains its sender's call, and a rank that has been
// waiting for a long time announces its call to the others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/plan/plan.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

struct SocketCommunicatorOptions {
  int rank = 0;
  // One socket per rank, connected to that rank; this rank's own entry is not used.
  std::vector<wire::UniqueFd> sockets;
  // The name of each rank's task ("worker 1"), for error messages. May be empty.
  std::vector<std::string> tasks;
  Costs costs;  // equal on all ranks
  // A rank that has waited for this long in an operation announces the call to the others.
  Duration announce_after{1s};
};

// Returns an error if the system cannot provide an eventfd.
StatusOr<std::unique_ptr<Communicator>> MakeSocketCommunicator(SocketCommunicatorOptions options);

}  // namespace tfjob::collectives
