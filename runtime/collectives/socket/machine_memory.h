// Connects plans in two levels to the memory that the ranks on one machine share. Private to this
// package.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/plan/plan_run.h"
#include "runtime/collectives/socket/socket_communicator.h"

namespace tfjob::collectives {

// Used by the thread that runs the rank's operations.
class MachineMemory {
 public:
  explicit MachineMemory(SharedLevel level) : level_(std::move(level)) {}

  const Hosts& hosts() const { return level_.hosts; }

  // An allocation has two parts, Offer and Take. Between them, every rank waits until all others
  // have called Offer. The memory of an allocation stays mapped until this object is destroyed,
  // because a neighbour may still exchange values in it.
  Status Offer(size_t bytes);
  StatusOr<std::unique_ptr<Communicator::Memory>> Take(size_t bytes);

  // Starts an execution of a plan in two levels.
  void Start(PlanRun& run, std::span<std::byte> values, std::span<std::byte> scratch);
  // Finds the span of a neighbour whose place has arrived. Returns DataLoss, with a message that
  // names the rank, if there is no such place.
  Status Learn(PlanRun& run, int rank);

 private:
  SharedLevel level_;
  std::vector<std::shared_ptr<Communicator::Memory>> kept_;
};

}  // namespace tfjob::collectives
