// Connects ranks that compute on GPUs with NCCL. Private to this package.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/transport/rank_rounds.h"
#include "runtime/collectives/transport/task_communicator.h"

namespace tfjob::collectives {

struct NcclAttempt {
  std::unique_ptr<Communicator> made;
  Status why_not;  // why `made` is null; equal on all ranks
};

// All ranks must call TryNccl, and get the same kind of result. Takes options.sockets if it makes a
// communicator, and otherwise leaves them as they were. Returns
//   Unavailable  if a rank does not answer, or if NCCL cannot reach it;
//   the errors of MakeNcclCommunicator, and that of `interrupt`.
StatusOr<NcclAttempt> TryNccl(TaskCommunicatorOptions& options);

}  // namespace tfjob::collectives
