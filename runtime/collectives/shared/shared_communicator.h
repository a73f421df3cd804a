// Creates communicators whose ranks are processes that share memory on one machine.
#pragma once

#include <memory>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/interrupt.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

struct SharedOptions {
  int rank = 0;
  // One connected unix socket (SOCK_STREAM) per rank, on which no bytes have been sent or read; the
  // entry of this rank is empty. There may be 2 to 128 ranks.
  std::vector<wire::UniqueFd> sockets;
  // The total time within which all other ranks must introduce themselves.
  Duration setup_timeout = 10s;
  // Can interrupt the wait for the other ranks (interrupt.h).
  Interrupt interrupt = nullptr;
};

// Waits until all ranks have called this function. Rank 0 provides the memory, and sends it to the
// others over their sockets. All ranks prove that they are on one machine: each writes a random
// number to the memory, sends the same number to all other ranks, and looks in the memory for the
// numbers that it receives. Returns
//   InvalidArgument    if a socket is missing or is not a unix socket, or if a peer's memory or
//                      message is not as expected;
//   FailedPrecondition if the number of a peer is not in the memory, because the peer is on another
//                      machine;
//   Unavailable        if a peer closes its socket;
//   DeadlineExceeded   if a peer does not introduce itself in time;
//   the error of `interrupt`.
// The messages name the rank.
//
// Spans in memory from Allocate are used in place; other spans are copied in pieces. A thread of
// the communicator watches the sockets. If the process of a rank exits, the operations of all other
// ranks fail at once with Unavailable, and the message names the rank.
StatusOr<std::unique_ptr<Communicator>> MakeSharedCommunicator(SharedOptions options);

}  // namespace tfjob::collectives
