#include "runtime/model/layers/merge.h"

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"

namespace tfjob::model::layers {
namespace {

graph::Output Combined(graph::Builder& b, MergeKind kind, graph::Output x, graph::Output y) {
  switch (kind) {
    case MergeKind::kAdd:
    case MergeKind::kAverage:
      return graph::Add(b, x, y);
    case MergeKind::kSubtract:
      return graph::Sub(b, x, y);
    case MergeKind::kMultiply:
      return graph::Mul(b, x, y);
    case MergeKind::kMaximum:
      return graph::Maximum(b, x, y);
    case MergeKind::kMinimum:
      return graph::Minimum(b, x, y);
  }
  return x;
}

// Inserts axes of size 1 after the batch axis, until x has the given rank.
graph::Output WithRank(graph::Builder& b, graph::Output x, int rank) {
  const Shape& shape = b.shape(x);
  if (shape.rank() >= rank) return x;
  std::vector<int64_t> dims = shape.dims();
  dims.insert(dims.begin() + 1, static_cast<size_t>(rank - shape.rank()), 1);
  return graph::Reshape(b, x, Shape(std::move(dims)));
}

// Returns the logical or of the inputs' masks, or no mask if any input has none.
graph::Output AnyMask(const LayerCall& call) {
  graph::Output any = call.mask();
  for (size_t i = 1; i < call.inputs.size() && any.valid(); ++i) {
    const graph::Output mask = call.mask(i);
    any = mask.valid() ? Or(call.b, any, mask) : graph::Output();
  }
  return any;
}

// Contains an input and its mask, which has the same rank or is invalid.
struct Operand {
  graph::Output x, mask;
};

// Multiplies the inputs. As in Keras 3, masked steps are treated as 1. If a step is masked in all
// inputs, the product is 0.
graph::Output Product(graph::Builder& b, const std::vector<Operand>& operands) {
  graph::Output product, any = operands[0].mask;
  for (const Operand& operand : operands) {
    graph::Output x = operand.x;
    if (operand.mask.valid()) x = Select(b, operand.mask, x, Scalar(b, b.dtype(x), 1));
    product = product.valid() ? graph::Mul(b, product, x) : x;
    any = any.valid() && operand.mask.valid() ? Or(b, any, operand.mask) : graph::Output();
  }
  return any.valid() ? Select(b, any, product, Scalar(b, b.dtype(product), 0)) : product;
}

// Returns the maximum or minimum of the inputs. As in Keras 3, a masked step of an input is
// replaced with the result for the preceding inputs. If a step is masked in all preceding inputs,
// their result is replaced with the current input.
graph::Output Extreme(graph::Builder& b, MergeKind kind, const std::vector<Operand>& operands) {
  graph::Output extreme = operands[0].x, any = operands[0].mask;
  for (const Operand& operand : std::span(operands).subspan(1)) {
    graph::Output x = operand.x;
    if (operand.mask.valid()) x = Select(b, operand.mask, x, extreme);
    if (any.valid()) extreme = Select(b, any, extreme, x);
    any = any.valid() && operand.mask.valid() ? Or(b, any, operand.mask) : graph::Output();
    extreme = Combined(b, kind, extreme, x);
  }
  return extreme;
}

// Joins the masks in the same way as the inputs. Each element has the mask of its step.
graph::Output JoinedMask(const LayerCall& call, int64_t axis) {
  graph::Builder& b = call.b;
  std::vector<graph::Output> masks;
  bool any = false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    graph::Output mask = call.mask(i);
    any = any || mask.valid();
    mask = mask.valid() ? AlongSteps(b, mask, call.inputs[i]) : Scalar(b, DType::kBool, 1);
    masks.push_back(graph::BroadcastTo(b, mask, b.shape(call.inputs[i])));
  }
  return any ? AnyOfLastAxis(b, graph::Concat(b, std::move(masks), axis)) : graph::Output();
}

}  // namespace

StatusOr<std::vector<TensorType>> MergedType(MergeKind kind, std::span<const TensorType> in) {
  if (kind == MergeKind::kSubtract && in.size() != 2)
    return InvalidArgument("expected exactly two inputs, got ", in.size());
  if (in.size() < 2) return InvalidArgument("expected two inputs or more, got ", in.size());
  TensorType merged = in[0];
  for (const TensorType& type : in.subspan(1)) {
    if (type.dtype != merged.dtype) {
      return InvalidArgument("expected inputs of one type, got ", merged.ToString(), " and ",
                             type.ToString());
    }
    ASSIGN_OR_RETURN(merged.shape, graph::BroadcastShapes(merged.shape, type.shape));
  }
  return std::vector{std::move(merged)};
}

graph::Output Merged(MergeKind kind, LayerCall& call) {
  graph::Builder& b = call.b;
  call.output_masks = {AnyMask(call)};
  int rank = 0;
  for (const graph::Output input : call.inputs) rank = std::max(rank, b.shape(input).rank());
  std::vector<Operand> operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const graph::Output x = call.inputs[i];
    const graph::Output mask = call.mask(i);
    operands.push_back(
        {WithRank(b, x, rank), mask.valid() ? WithRank(b, AlongSteps(b, mask, x), rank) : mask});
  }
  if (!b.ok()) return {};
  if (kind == MergeKind::kMultiply) return Product(b, operands);
  if (kind == MergeKind::kMaximum || kind == MergeKind::kMinimum) return Extreme(b, kind, operands);
  graph::Output merged = operands[0].x;
  for (const Operand& operand : std::span(operands).subspan(1))
    merged = Combined(b, kind, merged, operand.x);
  if (kind != MergeKind::kAverage || !merged.valid()) return merged;
  return graph::Div(b, merged,
                    graph::Scalar(b, b.dtype(merged), static_cast<double>(call.inputs.size())));
}

StatusOr<std::vector<TensorType>> Concatenate::OutputTypes(std::span<const TensorType> in) const {
  if (in.empty() || in.size() > graph::kMostJoined)
    return InvalidArgument("expected 1 to ", graph::kMostJoined, " inputs, got ", in.size());
  TensorType joined = in[0];
  const int rank = joined.shape.rank();
  const int64_t along = axis < 0 ? axis + rank : axis - 1;
  if (along < 0 || along >= rank) {
    return InvalidArgument("axis ", axis, " is not an axis of examples of shape ",
                           joined.shape.ToString(), " (axis 0 is the batch)");
  }
  std::vector<int64_t> dims = joined.shape.dims();
  int64_t& size = dims[static_cast<size_t>(along)];
  for (const TensorType& type : in.subspan(1)) {
    std::vector<int64_t> alike = type.shape.dims();
    const bool same_rank = type.shape.rank() == rank;
    const int64_t added = same_rank ? alike[static_cast<size_t>(along)] : 0;
    if (same_rank) alike[static_cast<size_t>(along)] = joined.shape.dim(static_cast<int>(along));
    if (type.dtype != joined.dtype || Shape(alike) != joined.shape ||
        __builtin_add_overflow(size, added, &size)) {
      return InvalidArgument("expected inputs of one type that differ only along axis ", axis,
                             ", got ", joined.ToString(), " and ", type.ToString());
    }
  }
  joined.shape = Shape(std::move(dims));
  return std::vector{std::move(joined)};
}

graph::Output Concatenate::Apply(LayerCall& call) const {
  call.output_masks = {JoinedMask(call, axis)};
  return graph::Concat(call.b, call.inputs, axis);
}

}  // namespace tfjob::model::layers
