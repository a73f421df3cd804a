// Creates the communicator of a generation from the data sockets of its members. The members use
// shared memory if all of them prove that they run on one machine. If they run on several machines,
// some of which run several members, they use shared memory within each machine, and their data
// sockets between machines. Otherwise, they use only their data sockets. The results are
// bit-identical in all of these cases. Members that compute on GPUs can also use NCCL, which adds
// in an order of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/interrupt.h"
#include "runtime/collectives/nccl/nccl_api.h"
#include "runtime/collectives/plan/plan.h"
#include "runtime/device/device_runtime.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

enum class TransportChoice : uint8_t { kAuto, kTcp, kSharedMemory };
// kIfAllCan: the ranks use NCCL if each of them has a GPU of its own and the same version of NCCL.
enum class NcclChoice : uint8_t { kNever, kIfAllCan, kAlways };

struct TaskCommunicatorOptions {
  int rank = 0;
  // One connected, non-blocking stream socket per rank, on which no bytes have been sent or read;
  // the entry of this rank is empty.
  std::vector<wire::UniqueFd> sockets;
  TransportChoice transport = TransportChoice::kAuto;  // equal on all ranks
  // Equal on all ranks. With kRing, the ranks use their data sockets, because ranks that share
  // memory add in the order of the tree.
  SumOrder order = SumOrder::kTree;
  // How long a rank may take for each step while the ranks set up shared memory.
  Duration patience{10s};
  // Can interrupt the waits for other ranks (interrupt.h).
  Interrupt interrupt = nullptr;
  // For tests, in which all ranks run on one machine: whether two ranks may find each other there.
  // Called with the lower rank first. Null: all ranks may.
  std::function<bool(int rank, int other)> may_share = nullptr;
  NcclChoice nccl = NcclChoice::kNever;  // equal on all ranks
  // The device on which this rank computes; null: no GPU. Used only with NCCL.
  std::shared_ptr<device::DeviceRuntime> device;
  Duration nccl_patience{60s};                  // see nccl::NcclCommunicatorOptions::patience
  const nccl::NcclApi* nccl_library = nullptr;  // for tests; null: this machine's library
  Costs costs;  // of exchanges between machines and within them; equal on all ranks
};

// Waits until all ranks have called this function, unless NCCL is never used and the choice is kTcp
// or the order is kRing. All ranks choose the same transport. The log names the transport, the
// machines if there are several of them, and the reason if not all ranks share memory. Returns
//   Unavailable         if a rank does not answer, or has closed its connection; the message names
//                       it;
//   InvalidArgument     if the choice is kSharedMemory and the order is kRing;
//   FailedPrecondition  if the choice is kSharedMemory and the ranks cannot share memory. If they
//                       merely lacked time, memory or descriptors, the error is Unavailable
//                       instead, because another attempt may succeed;
//   FailedPrecondition  if the ranks must use NCCL and a rank cannot; the message names it;
//   DeadlineExceeded    if NCCL does not connect the ranks in time;
//   the error of `interrupt`.
StatusOr<std::unique_ptr<Communicator>> MakeTaskCommunicator(TaskCommunicatorOptions options);

// Returns why a rank that computes on this device cannot use NCCL, whatever the other ranks are.
Status CanUseNccl(const std::shared_ptr<device::DeviceRuntime>& device);

}  // namespace tfjob::collectives
