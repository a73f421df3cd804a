// Implements the functions of NCCL in this process, for tests: the ranks are threads that use the
// fake driver (runtime/device/cuda/fake_driver.h). An operation runs on a rank's stream once the
// streams of all ranks have reached it, and adds in the order of the tree. Like communicators that
// do not block, calls finish late: CommGetAsyncError returns kNcclInProgress a number of times that
// is drawn from a seed.
//
// The process aborts with a message if
//   - a function other than CommGetAsyncError or CommAbort is called while a call is in progress;
//   - the ranks' n-th operations differ, where NCCL would hang or exchange garbage;
//   - a communicator is destroyed before its operations have run, or used afterwards.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/collectives/nccl/nccl_api.h"

namespace tfjob::collectives::nccl {

enum class NcclFault {
  kNone,
  kRemoteError,  // the call fails, because a rank is lost
  kLostRank,     // like kHang, but CommGetAsyncError reports the loss of a rank after the call
  kSlowCall,     // the call stays in progress until the communicator is aborted
  kHang,         // the operation never ends on the rank's GPU, until the communicator is aborted
};

struct FakeNcclOptions {
  uint64_t seed = 1;
  int most_polls = 3;  // the most results kNcclInProgress for a call
  // Returns the version that a rank's library reports. `thread` counts the threads that have asked,
  // from 0.
  std::function<int(int thread)> version = [](int) { return 22809; };
  // Returns what happens to a rank in an operation, counted from 1; operation 0 connects the ranks.
  std::function<NcclFault(int rank, int64_t operation)> fault = [](int, int64_t) {
    return NcclFault::kNone;
  };
};

// Returns the functions of the library. From now on, they behave as the options describe. No
// communicator may exist.
const NcclApi& FakeNccl(FakeNcclOptions options);

struct FakeNcclCounts {
  int communicators = 0;  // that exist
  int aborts = 0;
  int64_t operations = 0;  // that ranks have submitted; a group counts as one
};
// Counts since the last call of FakeNccl.
FakeNcclCounts FakeNcclState();

}  // namespace tfjob::collectives::nccl
