#include "runtime/kernels/cpu/products.h"

#include <algorithm>
#include <utility>

namespace tfjob::kernels::cpu {
namespace {

// Returns the matrices of an operand. If `swap` is set, the last axis of the batch is stored after
// the axis of the rows.
StatusOr<Matrices> MatricesOf(const Operand& operand, bool swap) {
  std::vector<int64_t> dims = operand.shape.dims();
  const size_t rank = dims.size();
  if (rank < (swap ? 3u : 2u)) return InvalidArgument(operand.ToString(), " has too few axes");
  std::vector<int64_t> strides(rank, 1);
  int64_t stride = std::max<int64_t>(1, operand.row_stride);
  for (size_t axis = rank - 1; axis-- > 0;) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  if (swap) {
    std::swap(dims[rank - 3], dims[rank - 2]);
    std::swap(strides[rank - 3], strides[rank - 2]);
  }
  Matrices matrices{
      .rows = dims[rank - 2], .cols = dims[rank - 1], .row_stride = strides[rank - 2]};
  // BLAS requires a row stride that is at least the number of columns, even for a single row.
  matrices.row_stride = std::max(matrices.row_stride, std::max<int64_t>(1, matrices.cols));
  matrices.batch.assign(dims.begin(), dims.end() - 2);
  matrices.strides.assign(strides.begin(), strides.end() - 2);
  return matrices;
}

// Returns the strides that broadcast the matrices to `batch`.
StatusOr<std::vector<int64_t>> StridesIn(const Matrices& matrices,
                                         const std::vector<int64_t>& batch) {
  std::vector<int64_t> strides(batch.size());
  const size_t own = matrices.batch.size();
  if (own > batch.size()) return InvalidArgument("an operand has more axes than the output");
  for (size_t i = 0; i < own; ++i) {
    const size_t axis = batch.size() - own + i;
    if (matrices.batch[i] == batch[axis]) {
      strides[axis] = matrices.strides[i];
    } else if (matrices.batch[i] != 1) {
      return InvalidArgument("an operand does not broadcast to the output");
    }
  }
  return strides;
}

}  // namespace

StatusOr<ProductLayout> ProductLayoutOf(const KernelRequest& request) {
  const Operand &a = request.inputs[0], &b = request.inputs[1], &c = request.outputs[0];
  for (const Operand* operand : {&a, &b, &c}) {
    if (operand->shape.rank() < 2) {
      return InvalidArgument(operand->ToString(), " must be a matrix");
    }
    if (operand->dtype != c.dtype) return InvalidArgument("the operands differ in dtype");
  }
  // Treat all axes except the last as the rows of a single matrix.
  ProductLayout p;
  p.transpose_a = request.attributes.Get("transpose_a", false);
  p.transpose_b = request.attributes.Get("transpose_b", false);
  p.m = p.transpose_a ? a.cols() : a.rows();
  p.k = p.transpose_a ? a.rows() : a.cols();
  p.n = p.transpose_b ? b.rows() : b.cols();
  if ((p.transpose_b ? b.cols() : b.rows()) != p.k || c.rows() != p.m || c.cols() != p.n) {
    return InvalidArgument("the inner dimensions must be equal, the outer ones the output's");
  }
  // BLAS requires strides of at least 1, even for empty matrices.
  p.a_stride = std::max<int64_t>(1, a.row_stride);
  p.b_stride = std::max<int64_t>(1, b.row_stride);
  p.c_stride = std::max<int64_t>(1, c.row_stride);
  return p;
}

StatusOr<BatchLayout> BatchLayoutOf(const KernelRequest& request) {
  for (const Operand& input : request.inputs)
    if (input.dtype != request.outputs[0].dtype)
      return InvalidArgument("the operands differ in dtype");
  const Attributes& attributes = request.attributes;
  BatchLayout l{.adj_x = attributes.Get("adj_x", false), .adj_y = attributes.Get("adj_y", false)};
  ASSIGN_OR_RETURN(l.x, MatricesOf(request.inputs[0], attributes.Get("swap_x", false)));
  ASSIGN_OR_RETURN(l.y, MatricesOf(request.inputs[1], attributes.Get("swap_y", false)));
  ASSIGN_OR_RETURN(l.z, MatricesOf(request.outputs[0], attributes.Get("swap_z", false)));
  l.batch = l.z.batch;
  ASSIGN_OR_RETURN(l.x_steps, StridesIn(l.x, l.batch));
  ASSIGN_OR_RETURN(l.y_steps, StridesIn(l.y, l.batch));
  l.z_steps = l.z.strides;
  l.m = l.adj_x ? l.x.cols : l.x.rows;
  l.k = l.adj_x ? l.x.rows : l.x.cols;
  l.n = l.adj_y ? l.y.rows : l.y.cols;
  if ((l.adj_y ? l.y.cols : l.y.rows) != l.k || l.z.rows != l.m || l.z.cols != l.n)
    return InvalidArgument("the inner dimensions must be equal, the outer ones the output's");
  return l;
}

}  // namespace tfjob::kernels::cpu
