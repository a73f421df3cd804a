#include "runtime/model/layers/merge.h"

#include <algorithm>

#include "runtime/graph/op.h"
#include "runtime/graph/ops.h"

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

// Returns the value with axes of size 1 after the batch axis, so that it has this rank.
graph::Output WithRank(graph::Builder& b, graph::Output x, int rank) {
  const Shape& shape = b.shape(x);
  if (shape.rank() >= rank) return x;
  std::vector<int64_t> dims = shape.dims();
  dims.insert(dims.begin() + 1, static_cast<size_t>(rank - shape.rank()), 1);
  return graph::Reshape(b, x, Shape(std::move(dims)));
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

graph::Output Merged(MergeKind kind, const LayerCall& call) {
  graph::Builder& b = call.b;
  int rank = 0;
  for (const graph::Output input : call.inputs) rank = std::max(rank, b.shape(input).rank());
  graph::Output merged = WithRank(b, call.x(), rank);
  for (size_t i = 1; i < call.inputs.size(); ++i)
    merged = Combined(b, kind, merged, WithRank(b, call.inputs[i], rank));
  if (kind != MergeKind::kAverage || !merged.valid()) return merged;
  return graph::Div(b, merged,
                    graph::Scalar(b, b.dtype(merged), static_cast<double>(call.inputs.size())));
}

}  // namespace tfjob::model::layers
