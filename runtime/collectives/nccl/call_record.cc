#include "runtime/collectives/nccl/call_record.h"

namespace tfjob::collectives::nccl {

CallRecord CallRecord::Of(const Call& call, uint64_t own_bytes, uint64_t most_bytes) {
  return {.operation = static_cast<int64_t>(call.operation),
          .bytes = call.bytes,
          .element_bytes = call.element_bytes,
          .dtype = static_cast<int64_t>(call.dtype),
          .reduction = static_cast<int64_t>(call.reduction),
          .root = call.root,
          .own_bytes = own_bytes,
          .most_bytes = most_bytes};
}

std::string CallRecord::Text() const {
  const auto kind = static_cast<Operation>(operation);
  if (kind == Operation::kAllGatherVariable)
    return StrCat("AllGatherVariable(at most ", most_bytes, " bytes)");
  return ToString(Call{.operation = kind,
                       .bytes = bytes,
                       .element_bytes = element_bytes,
                       .dtype = static_cast<DType>(dtype),
                       .reduction = static_cast<Reduction>(reduction),
                       .root = static_cast<int>(root)});
}

NcclType TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return kNcclFloat32;
    case DType::kFloat64:
      return kNcclFloat64;
    case DType::kBFloat16:
      return kNcclBFloat16;
    case DType::kFloat16:
      return kNcclFloat16;
    case DType::kInt32:
      return kNcclInt32;
    case DType::kInt64:
      return kNcclInt64;
    default:
      return kNcclUint8;
  }
}

NcclOperator OperatorOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return kNcclSum;
    case Reduction::kMinimum:
      return kNcclMinimum;
    case Reduction::kMaximum:
      return kNcclMaximum;
    case Reduction::kMean:
      return kNcclAverage;
  }
  return kNcclSum;
}

}  // namespace tfjob::collectives::nccl
