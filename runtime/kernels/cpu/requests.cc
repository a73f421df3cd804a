#include "runtime/kernels/cpu/requests.h"

#include <algorithm>
#include <utility>

#include "runtime/kernels/cpu/prepare.h"

namespace tfjob::kernels::cpu {
namespace {

Status ExpectSameDtype(const Operand& in, const Operand& out) {
  if (in.dtype == out.dtype) return OkStatus();
  return InvalidArgument("the operands differ in dtype: ", in.ToString(), " and ", out.ToString());
}

// Returns the attribute `name`, which must contain one index per axis.
StatusOr<std::vector<int64_t>> IndexOf(const KernelRequest& request, const char* name) {
  const auto* index = request.attributes.Find<std::vector<int64_t>>(name);
  if (index != nullptr && static_cast<int>(index->size()) == request.inputs[0].shape.rank())
    return *index;
  return InvalidArgument("the attribute ", name, " must have one number per axis");
}

// Returns InvalidArgument unless the block `shape` at `index` lies within `operand`.
Status ExpectBlock(const Operand& operand, const std::vector<int64_t>& index, const Shape& shape) {
  bool within = operand.shape.rank() == shape.rank();
  for (size_t axis = 0; within && axis < index.size(); ++axis) {
    const int64_t size = operand.shape.dims()[axis];
    within = index[axis] >= 0 && index[axis] <= size && shape.dims()[axis] <= size - index[axis];
  }
  if (within) return OkStatus();
  return InvalidArgument(shape.ToString(), " does not lie within ", operand.ToString());
}

// Returns InvalidArgument unless the operands are ids[n] and a matrix of n rows.
Status ExpectRows(const Operand& ids, const Operand& matrix) {
  if (ids.dtype != DType::kInt32 && ids.dtype != DType::kInt64)
    return InvalidArgument("ids must be int32 or int64, not ", Name(ids.dtype));
  if (matrix.shape.rank() != 2)
    return InvalidArgument("expected rows, a matrix, got ", matrix.ToString());
  return ExpectShape(ids, {matrix.shape.dim(0)});
}

}  // namespace

Shape ShapeWithout(const Shape& shape, std::span<const int> axes, bool keep_dims) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool removed = std::ranges::binary_search(axes, axis);
    if (!removed || keep_dims) dims.push_back(removed ? 1 : shape.dim(axis));
  }
  return Shape(std::move(dims));
}

StatusOr<ArgMaxForm> ArgMaxFormOf(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  const int rank = in.shape.rank();
  int64_t given = request.attributes.Get<int64_t>("axis", -1);
  given += given < 0 ? rank : 0;
  if (given < 0 || given >= rank) return InvalidArgument("no such axis");
  if (rank > kMaxRank)
    return Unimplemented("more than ", kMaxRank, " dimensions: ", in.shape.ToString());
  if (out.dtype != DType::kInt64) return InvalidArgument("the output must be int64");
  const int axis = static_cast<int>(given);
  ArgMaxForm form{.loop = {}, .count = in.shape.dim(axis), .step = 0};
  if (form.count == 0) return InvalidArgument("the axis is empty");
  RETURN_IF_ERROR(ExpectShape(out, ShapeWithout(in.shape, std::span(&axis, 1), false)));
  const Strides own = StridesOf(in);
  form.step = own[static_cast<size_t>(axis)];
  Strides others{};
  std::copy_n(own.begin(), axis, others.begin());
  std::copy_n(own.begin() + axis + 1, rank - axis - 1, others.begin() + axis);
  const Strides strides[] = {StridesOf(out), others};
  ASSIGN_OR_RETURN(form.loop, StridedLoop::Create(out.shape, strides));
  return form;
}

StatusOr<std::vector<Block>> ConcatBlocks(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, std::max<size_t>(1, request.inputs.size()), 1));
  const Operand& out = request.outputs[0];
  const int64_t axis = request.attributes.Get<int64_t>("axis", -1);
  if (axis < 0 || axis >= out.shape.rank()) return InvalidArgument("no axis ", axis);
  const std::vector<int64_t> from(out.shape.dims().size(), 0);
  std::vector<int64_t> joined = out.shape.dims(), to = from;
  std::vector<Block> blocks;
  int64_t &size = joined[static_cast<size_t>(axis)], &along = to[static_cast<size_t>(axis)];
  for (const Operand& input : request.inputs) {
    size = input.shape.rank() == out.shape.rank() ? input.shape.dim(static_cast<int>(axis)) : 0;
    RETURN_IF_ERROR(ExpectShape(input, Shape(joined)));
    RETURN_IF_ERROR(ExpectSameDtype(input, out));
    blocks.push_back({input.shape, from, to});
    along += size;
  }
  size = along;
  RETURN_IF_ERROR(ExpectShape(out, Shape(joined)));
  return blocks;
}

StatusOr<Block> SliceBlock(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  ASSIGN_OR_RETURN(std::vector<int64_t> begin, IndexOf(request, "begin"));
  RETURN_IF_ERROR(ExpectBlock(in, begin, out.shape));
  RETURN_IF_ERROR(ExpectSameDtype(in, out));
  std::vector<int64_t> to(begin.size(), 0);
  return Block{out.shape, std::move(begin), std::move(to)};
}

StatusOr<Block> PadBlock(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  ASSIGN_OR_RETURN(std::vector<int64_t> before, IndexOf(request, "before"));
  RETURN_IF_ERROR(ExpectBlock(out, before, in.shape));
  RETURN_IF_ERROR(ExpectSameDtype(in, out));
  std::vector<int64_t> from(before.size(), 0);
  return Block{in.shape, std::move(from), std::move(before)};
}

int64_t OffsetOf(const std::vector<int64_t>& index, const Strides& strides) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * strides[axis];
  return offset;
}

bool AddsToDoubles(const KernelRequest& request) {
  return request.inputs.size() == 2 && request.inputs[0].dtype == DType::kFloat64 &&
         request.inputs[1].dtype == DType::kFloat32;
}

Status CheckGather(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  const Operand &table = request.inputs[0], &out = request.outputs[0];
  RETURN_IF_ERROR(ExpectRows(request.inputs[1], out));
  if (table.shape.rank() == 2 && table.cols() == out.cols() && table.dtype == out.dtype)
    return OkStatus();
  return InvalidArgument("rows ", out.ToString(), " do not come from ", table.ToString());
}

Status CheckDeduplicateIndexedSlices(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 2));
  const Operand &ids = request.inputs[0], &values = request.inputs[1];
  const Operand &distinct = request.outputs[0], &sums = request.outputs[1];
  RETURN_IF_ERROR(ExpectRows(ids, values));
  RETURN_IF_ERROR(ExpectShape(distinct, ids.shape));
  RETURN_IF_ERROR(ExpectShape(sums, values.shape));
  if (distinct.dtype == DType::kInt64 && sums.dtype == values.dtype) return OkStatus();
  return InvalidArgument("expected int64 ids and sums of the type of the rows");
}

Status CheckUnsortedSegmentSum(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  const Operand &values = request.inputs[0], &ids = request.inputs[1], &out = request.outputs[0];
  RETURN_IF_ERROR(ExpectRows(ids, values));
  if (out.shape.rank() == 2 && out.cols() == values.cols() && out.dtype == values.dtype)
    return OkStatus();
  return InvalidArgument("rows ", values.ToString(), " do not fit into ", out.ToString());
}

Status NoSuchRow(int64_t id, int64_t position, const std::string& table, int64_t rows) {
  const std::string expected =
      rows == 0 ? ", which is empty" : StrCat(": expected 0 to ", rows - 1);
  return InvalidArgument("id ", id, " at position ", position, " of the batch is no row of ",
                         table.empty() ? "the table" : table, expected);
}

Status NotFinite(const std::string& message) {
  return Aborted(message.empty() ? "a tensor" : message, " contains NaN or infinity");
}

}  // namespace tfjob::kernels::cpu
