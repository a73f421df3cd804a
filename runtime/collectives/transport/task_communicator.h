// Creates the communicator of a generation from the data sockets of its members. The members use
// shared memory if all of them prove that they run on one machine, and otherwise their data
// sockets. The results are bit-identical in both cases.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/interrupt.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

enum class TransportChoice : uint8_t { kAuto, kTcp, kSharedMemory };

struct TaskCommunicatorOptions {
  int rank = 0;
  // One connected, non-blocking stream socket per rank, on which no bytes have been sent or read;
  // the entry of this rank is empty.
  std::vector<wire::UniqueFd> sockets;
  TransportChoice transport = TransportChoice::kAuto;  // equal on all ranks
  // How long a rank may take for each step while the ranks set up shared memory.
  Duration patience{10s};
  // Can interrupt the waits for other ranks (interrupt.h).
  Interrupt interrupt = nullptr;
};

// Waits until all ranks have called this function, unless the choice is kTcp. All ranks choose the
// same transport. The log names the transport and, if it is not shared memory, the reason. Returns
//   Unavailable         if a rank does not answer, or has closed its connection; the message names
//                       it;
//   FailedPrecondition  if the choice is kSharedMemory and the ranks cannot share memory. If they
//                       merely lacked time, memory or descriptors, the error is Unavailable
//                       instead, because another attempt may succeed;
//   the error of `interrupt`.
StatusOr<std::unique_ptr<Communicator>> MakeTaskCommunicator(TaskCommunicatorOptions options);

}  // namespace tfjob::collectives
