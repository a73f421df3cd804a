// Checks the requests of ops that have kernels for CPUs and for GPUs, and reads their attributes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/kernels/cpu/strided.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

// Returns the shape without the axes, which must be ascending. With `keep_dims`, they stay, with
// size 1.
Shape ShapeWithout(const Shape& shape, std::span<const int> axes, bool keep_dims);

// The request of an ArgMax.
struct ArgMaxForm {
  StridedLoop loop;   // over the output, and over the input without the axis
  int64_t count = 0;  // elements of the axis
  int64_t step = 0;   // between them, in elements
};
StatusOr<ArgMaxForm> ArgMaxFormOf(const KernelRequest& request);

// A block of this shape, which is copied from index `from` of an input to index `to` of the output.
struct Block {
  Shape shape;
  std::vector<int64_t> from, to;
};
// Returns one block per input. All operands have the same dtype.
StatusOr<std::vector<Block>> ConcatBlocks(const KernelRequest& request);
StatusOr<Block> SliceBlock(const KernelRequest& request);
StatusOr<Block> PadBlock(const KernelRequest& request);
// Returns the offset of the element with this index. There must be a stride for each of its axes.
int64_t OffsetOf(const std::vector<int64_t>& index, const Strides& strides);

// Return InvalidArgument unless the operands fit. The ids are int32 or int64.
Status CheckGather(const KernelRequest& request);
Status CheckDeduplicateIndexedSlices(const KernelRequest& request);
Status CheckUnsortedSegmentSum(const KernelRequest& request);
// Returns the error for an id of the batch that is no row of the table, which has `rows` rows. The
// name of the table may be empty.
Status NoSuchRow(int64_t id, int64_t position, const std::string& table, int64_t rows);

}  // namespace tfjob::kernels::cpu
