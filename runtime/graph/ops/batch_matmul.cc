// Implements the multiplication of batches of matrices.
#include <algorithm>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// ---- inference

// Returns the shape, with axes -3 and -2 exchanged if `swap` is set.
Shape Exchanged(const Shape& shape, bool swap) {
  std::vector<int64_t> dims = shape.dims();
  if (swap) std::swap(dims[dims.size() - 3], dims[dims.size() - 2]);
  return Shape(std::move(dims));
}

Shape BatchOf(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
}

InferResult InferBatchMatMul(InferenceContext& context) {
  Shape shapes[2];
  for (size_t i = 0; i < 2; ++i) {
    const TensorType& type = context.inputs[i];
    const bool swap = context.attributes.Get(i == 0 ? "swap_x" : "swap_y", false);
    if (!IsFloat(type.dtype) || type.shape.rank() < (swap ? 3 : 2))
      return InvalidArgument("expected a float type of rank ", swap ? 3 : 2, " or more");
    shapes[i] = Exchanged(type.shape, swap);
  }
  if (context.inputs[0].dtype != context.inputs[1].dtype)
    return InvalidArgument("expected inputs of one dtype; add a Cast");
  const bool adj_x = context.attributes.Get("adj_x", false);
  const bool adj_y = context.attributes.Get("adj_y", false);
  const int64_t inner_x = shapes[0].dim(adj_x ? -2 : -1);
  const int64_t inner_y = shapes[1].dim(adj_y ? -1 : -2);
  if (inner_x != inner_y)
    return InvalidArgument("expected equal inner dimensions, got ", inner_x, " and ", inner_y);
  ASSIGN_OR_RETURN(const Shape batch, BroadcastShapes(BatchOf(shapes[0]), BatchOf(shapes[1])));
  std::vector<int64_t> dims = batch.dims();
  dims.push_back(shapes[0].dim(adj_x ? -1 : -2));
  dims.push_back(shapes[1].dim(adj_y ? -2 : -1));
  const bool swap = context.attributes.Get("swap_z", false);
  if (swap && dims.size() < 3) return InvalidArgument("expected an output of rank 3 or more");
  return std::vector{TensorType{context.inputs[0].dtype, Exchanged(Shape(std::move(dims)), swap)}};
}

// ---- gradients

// Applies the formulas of MatMul to each pair of matrices. If a matrix was broadcast, its gradient
// is summed over the axes along which it was repeated.
Gradient BatchMatMulGradient(GradientContext& c) {
  const Attributes& attributes = c.node.attributes;
  if (attributes.Get("swap_x", false) || attributes.Get("swap_y", false) ||
      attributes.Get("swap_z", false)) {
    c.b.Fail(Unimplemented("node ", c.node.name, ": BatchMatMulV2 has no gradient after a pass"));
    return NoGradient(c);
  }
  const bool ax = attributes.Get("adj_x", false), ay = attributes.Get("adj_y", false);
  const Output x = c.input(0), y = c.input(1);
  const Output d_y = ay ? BatchMatMul(c.b, c.dy(), x, true, ax) : BatchMatMul(c.b, x, c.dy(), !ax);
  const Output d_x =
      ax ? BatchMatMul(c.b, y, c.dy(), ay, true) : BatchMatMul(c.b, c.dy(), y, false, !ay);
  return {SumTo(c.b, d_x, c.b.shape(x)), SumTo(c.b, d_y, c.b.shape(y))};
}

}  // namespace

std::vector<Op> BatchMatMulOps() {
  return {{"BatchMatMulV2", 2, 2, InferBatchMatMul, BatchMatMulGradient}};
}

Output BatchMatMul(Builder& b, Output x, Output y, bool adj_x, bool adj_y) {
  Attributes attributes;
  if (adj_x) attributes.Set("adj_x", true);
  if (adj_y) attributes.Set("adj_y", true);
  return b.Add("BatchMatMulV2", {x, y}, std::move(attributes));
}

}  // namespace tfjob::graph
