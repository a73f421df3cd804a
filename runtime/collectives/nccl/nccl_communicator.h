// Implements a communicator whose ranks each use one GPU, with NCCL. AllReduceOnDevice adds values
// in the memory of the GPUs. The spans of all other operations are in the host's memory: an
// operation copies its span to the GPU, exchanges it there, and copies the result back.
//
// NCCL alone compares nothing: ranks that call different operations hang or exchange garbage, and a
// rank that never calls makes the others wait on their GPUs. Therefore the ranks first meet over
// the sockets of `control`, where each compares its call with those of the others. A rank that is
// late or dead is named there, as with sockets alone. The GPUs start once all ranks have called.
// While the GPUs work, the calling thread polls the GPU, NCCL's asynchronous error and the sockets.
// (AllReduceOnDevice returns once NCCL has accepted the operation, and AwaitDevice polls.) If one
// of them reports an error, if another thread aborts, or if the GPUs take longer than `patience`,
// the rank aborts NCCL's communicator and tells the other ranks why.
//
// Sums have no defined order (communicator.h): NCCL chooses the order by size and topology. All
// ranks get equal bits.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/interrupt.h"
#include "runtime/collectives/nccl/nccl_api.h"
#include "runtime/collectives/socket/socket_communicator.h"
#include "runtime/device/cuda/cuda_runtime.h"

namespace tfjob::collectives::nccl {

struct NcclCommunicatorOptions {
  const NcclApi* nccl = nullptr;                      // must outlive the communicator
  std::shared_ptr<device::cuda::CudaRuntime> device;  // another GPU on each rank
  // Connects the same ranks. No operation has been called on it.
  std::unique_ptr<SocketCommunicator> control;
  // Operations on smaller spans use `control` only, because copies to the GPU and back would take
  // longer. Equal on all ranks.
  size_t least_bytes = size_t{64} << 10;
  // How long an operation may take once all ranks have called it.
  Duration patience{60s};
  Duration connect_patience{60s};  // how long NCCL may take to connect the ranks
  // Can interrupt MakeNcclCommunicator (interrupt.h).
  Interrupt interrupt = nullptr;
};

// All ranks must call this function. Waits until NCCL has connected them. Returns
//   FailedPrecondition  if the ranks have different versions of NCCL; the message names two ranks;
//   DeadlineExceeded    if NCCL does not connect the ranks in time;
//   Unavailable         if a rank is gone, or if NCCL cannot reach it;
//   another rank's error, or the error of `interrupt`.
StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(NcclCommunicatorOptions options);

}  // namespace tfjob::collectives::nccl
