#include "runtime/kernels/cpu/strided.h"

#include <algorithm>

namespace tfjob::kernels::cpu {

Strides StridesOf(const Operand& operand) {
  Strides strides{};
  const int rank = std::min(operand.shape.rank(), kMaxRank);
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride = d == rank - 1 ? operand.row_stride : stride * operand.shape.dim(d);
  }
  return strides;
}

StatusOr<Strides> BroadcastStrides(const Operand& operand, const Shape& shape) {
  const int missing = shape.rank() - operand.shape.rank();
  bool fits = missing >= 0 && shape.rank() <= kMaxRank;
  const Strides own = StridesOf(operand);
  Strides strides{};
  for (int d = 0; fits && d < operand.shape.rank(); ++d) {
    const int64_t size = operand.shape.dim(d);
    fits = size == 1 || size == shape.dim(d + missing);
    strides[d + missing] = size == 1 ? 0 : own[d];
  }
  if (fits) return strides;
  return InvalidArgument(operand.ToString(), " does not broadcast to ", shape.ToString());
}

StatusOr<StridedLoop> StridedLoop::Create(const Shape& shape, std::span<const Strides> operands) {
  if (shape.rank() > kMaxRank) {
    return Unimplemented("more than ", kMaxRank, " dimensions: ", shape.ToString());
  }
  StridedLoop loop;
  loop.operands_ = static_cast<int>(operands.size());
  loop.rank_ = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t size = shape.dim(d);
    if (size == 1) continue;
    const int last = loop.rank_ - 1;
    bool merges = last >= 0;
    for (int o = 0; merges && o < loop.operands_; ++o) {
      merges = loop.strides_[o][last] == operands[o][d] * size;
    }
    const int at = merges ? last : loop.rank_++;
    loop.dims_[at] = (merges ? loop.dims_[at] : 1) * size;
    for (int o = 0; o < loop.operands_; ++o) loop.strides_[o][at] = operands[o][d];
  }
  if (loop.rank_ == 0) {
    loop.rank_ = 1;
    loop.dims_[0] = 1;
  }
  for (int d = 0; d < loop.rank_ - 1; ++d) loop.outer_ *= loop.dims_[d];
  return loop;
}

}  // namespace tfjob::kernels::cpu
