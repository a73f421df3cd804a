// Creates communicators whose ranks are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "runtime/collectives/communicator.h"

namespace tfjob::collectives {

// Returns one communicator per rank, each for one thread. All spans are used in place, even in
// memory that Allocate did not return. If a thread destroys its communicator, the operations of the
// other threads fail. `ranks` is from 1 to 128.
std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(int ranks);

}  // namespace tfjob::collectives
