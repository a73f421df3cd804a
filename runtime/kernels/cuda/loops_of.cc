#include "runtime/kernels/cuda/loops_of.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/kernels/cuda/families.h"

namespace tfjob::kernels::cuda {

static_assert(kLoopRank == cpu::kMaxRank);

Loops LoopsOf(const cpu::StridedLoop& loop) {
  Loops loops{.count = static_cast<uint32_t>(loop.outer() * loop.inner()), .rank = loop.rank()};
  for (int axis = 0; axis < loop.rank(); ++axis)
    loops.size[axis] = static_cast<uint32_t>(loop.size(axis));
  return loops;
}

void CopyStrides(const cpu::StridedLoop& loop, int operand, int64_t (&strides)[kLoopRank]) {
  for (int axis = 0; axis < loop.rank(); ++axis) strides[axis] = loop.stride(operand, axis);
}

int32_t MovedBytes(DType dtype) {
  const auto bytes = static_cast<int32_t>(SizeOf(dtype));
  ENFORCE(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8,
          "the kernels move elements of 1, 2, 4 or 8 bytes");
  return bytes;
}

MoveParameter WholeMove(const cpu::StridedLoop& loop, DType dtype) {
  MoveParameter p{.loops = LoopsOf(loop), .bytes = MovedBytes(dtype)};
  CopyStrides(loop, 0, p.out_stride);
  CopyStrides(loop, 1, p.in_stride);
  std::copy_n(p.loops.size, kLoopRank, p.covered);
  return p;
}

StatusOr<BlockMove> BroadcastMove(const Operand& in, const Operand& out) {
  ASSIGN_OR_RETURN(const cpu::Strides repeated, cpu::BroadcastStrides(in, out.shape));
  const cpu::Strides strides[] = {cpu::StridesOf(out), repeated};
  ASSIGN_OR_RETURN(const auto loop, cpu::StridedLoop::Create(out.shape, strides));
  return BlockMove{.parameter = WholeMove(loop, out.dtype)};
}

void SubmitMove(const Launcher& launcher, const BlockMove& move, const void* in, void* out,
                Stream& stream) {
  MoveParameter p = move.parameter;
  p.in = static_cast<const std::byte*>(in) + move.in_offset;
  p.out = static_cast<std::byte*>(out) + move.out_offset;
  Submit(launcher, "Move", {Blocks(p.loops.count, kMoveThreads)}, {kMoveThreads}, p, stream);
}

}  // namespace tfjob::kernels::cuda
