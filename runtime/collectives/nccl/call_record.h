// Converts calls to the records that the ranks send each other, and to the arguments that NCCL
// expects. Private to this package.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/collectives/nccl/nccl_api.h"
#include "runtime/collectives/plan/plan.h"

namespace tfjob::collectives::nccl {

// A rank's call, as it travels to the other ranks when they meet. It comes from a peer, so its
// fields may have any values.
struct CallRecord {
  int64_t operation = 0, bytes = 0, element_bytes = 1, dtype = 0, reduction = 0, root = 0;
  uint64_t own_bytes = 0, most_bytes = 0;  // of AllGatherVariable

  static CallRecord Of(const Call& call, uint64_t own_bytes, uint64_t most_bytes);
  bool Matches(CallRecord other) const {
    other.own_bytes = own_bytes;  // may differ
    return *this == other;
  }
  bool operator==(const CallRecord&) const = default;
  std::string Text() const;  // "AllReduce(1000 bytes of float32, sum)"
};

NcclType TypeOf(DType dtype);  // kNcclUint8 for types that cannot be reduced
NcclOperator OperatorOf(Reduction reduction);

}  // namespace tfjob::collectives::nccl
