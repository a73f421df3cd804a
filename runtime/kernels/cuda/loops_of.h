// Describes layouts, on the host, to the kernels in layout.cu and select.cu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/cpu/strided.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/kernels/cuda/table.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

// Return the loops, and the strides of one of their operands.
Loops LoopsOf(const cpu::StridedLoop& loop);
void CopyStrides(const cpu::StridedLoop& loop, int operand, int64_t (&strides)[kLoopRank]);

// Describes how a block of one tensor is copied to a block of another. The offsets are in bytes.
struct BlockMove {
  MoveParameter parameter;  // complete except for the pointers
  int64_t in_offset = 0, out_offset = 0;
};

// Returns the size of an element in bytes, which is one of the sizes that the kernels can move.
int32_t MovedBytes(DType dtype);
// Returns the parameter for copying all elements. Operand 0 of the loop is the output, and operand
// 1 is the input.
MoveParameter WholeMove(const cpu::StridedLoop& loop, DType dtype);
// Returns the move that repeats the input's elements to fill the output. Returns InvalidArgument if
// the input does not broadcast to the output.
StatusOr<BlockMove> BroadcastMove(const Operand& in, const Operand& out);

void SubmitMove(const Launcher& launcher, const BlockMove& move, const void* in, void* out,
                Stream& stream);

}  // namespace tfjob::kernels::cuda
