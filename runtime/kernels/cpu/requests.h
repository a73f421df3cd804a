// Checks requests and reads their attributes, for ops that have kernels for both CPUs and GPUs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/kernels/cpu/strided.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

// Removes the axes, which must be ascending, from the shape. With `keep_dims`, instead sets their
// sizes to 1.
Shape ShapeWithout(const Shape& shape, std::span<const int> axes, bool keep_dims);

// Describes a checked request for ArgMax.
struct ArgMaxForm {
  StridedLoop loop;   // over the output, and the input without the axis
  int64_t count = 0;  // the size of the axis
  int64_t step = 0;   // the distance along the axis, in elements
};
StatusOr<ArgMaxForm> ArgMaxFormOf(const KernelRequest& request);

// Describes a block of this shape, to be copied from index `from` of an input to index `to` of the
// output.
struct Block {
  Shape shape;
  std::vector<int64_t> from, to;
};
// Return the blocks to copy; for Concat, one per input. Check that all operands have the same
// dtype.
StatusOr<std::vector<Block>> ConcatBlocks(const KernelRequest& request);
StatusOr<Block> SliceBlock(const KernelRequest& request);
StatusOr<Block> PadBlock(const KernelRequest& request);
// Returns the offset, in elements, of the element with this index. `strides` must contain one
// stride per axis.
int64_t OffsetOf(const std::vector<int64_t>& index, const Strides& strides);

// Returns whether the request for AssignAdd adds float32 values to a float64 variable.
bool AddsToDoubles(const KernelRequest& request);

// Return InvalidArgument if the operands have incompatible shapes or dtypes. The ids are int32 or
// int64.
Status CheckGather(const KernelRequest& request);
Status CheckDeduplicateIndexedSlices(const KernelRequest& request);
Status CheckUnsortedSegmentSum(const KernelRequest& request);
// Returns the error for an id that is not a valid row index. `position` is the position of the id
// in the batch, and `rows` is the number of rows of the table. The table's name may be empty.
Status NoSuchRow(int64_t id, int64_t position, const std::string& table, int64_t rows);
// Returns the error of CheckNumerics. `message` names the tensor, and may be empty.
Status NotFinite(const std::string& message);

}  // namespace tfjob::kernels::cpu
