#include "runtime/collectives/plan/plan.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {

Status CheckCall(const Call& call, int ranks) {
  const bool reduces = call.operation == Operation::kAllReduce ||
                       call.operation == Operation::kReduceScatter ||
                       call.operation == Operation::kReduce;
  if (reduces) RETURN_IF_ERROR(CheckReduction(Name(call.operation), call.dtype, call.reduction));
  if (call.root < 0 || call.root >= ranks) {
    return InvalidArgument(Name(call.operation), " with root ", call.root, ": there are ", ranks,
                           " ranks, counted from 0");
  }
  if (call.element_bytes <= 0 || call.bytes % call.element_bytes != 0) {
    return InvalidArgument(Name(call.operation), " of ", call.bytes, " bytes in elements of ",
                           call.element_bytes, " bytes: expected a whole number of elements");
  }
  if (call.operation == Operation::kAllToAll && call.bytes / call.element_bytes % ranks != 0) {
    return InvalidArgument("AllToAll of ", call.bytes / call.element_bytes,
                           " elements: expected a multiple of the ", ranks, " ranks");
  }
  return OkStatus();
}

}  // namespace tfjob::collectives
