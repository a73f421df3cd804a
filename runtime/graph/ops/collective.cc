// Implements ops that combine the values of the replicas of a step.
#include <algorithm>
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

constexpr char kAllReduceMean[] = "AllReduceMean";

InferResult InferAllReduceMean(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  const bool floats = x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64;
  if (!floats || x.shape.rank() != 1 || x.shape.dim(0) < 1)
    return InvalidArgument("expected a vector of float32 or float64 with at least one element");
  if (context.attributes.Get<int64_t>(kExchange, -1) < 0) {
    return InvalidArgument("expected the attribute ", kExchange,
                           ", the number of earlier exchanges in the graph");
  }
  return std::vector{x};
}

// Replica r minimises w_r·L_r, where w_r is its share of the examples and L_r is its loss. With
// y = Σ w_s·x_s, d (Σ w_s·L_s) / d x_r = w_r·(Σ w_s·dL_s/dy). Each replica later multiplies its
// gradients by w_r, so here d_x = Σ w_s·dy_s, which is the same op.
Gradient AllReduceMeanGradient(GradientContext& c) {
  if (!c.wanted[0]) return {Output()};
  return {AllReduceMean(c.b, c.dy())};
}

}  // namespace

std::vector<Op> CollectiveOps() {
  return {
      {kAllReduceMean, 1, 1, InferAllReduceMean, AllReduceMeanGradient, Effect::kExchange},
  };
}

std::vector<int> Exchanges(const Graph& graph) {
  std::vector<int> found;
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Op* op = FindOp(graph.node(id).op);
    if (op != nullptr && op->effect == Effect::kExchange) found.push_back(id);
  }
  return found;
}

Output AllReduceMean(Builder& b, Output x) {
  if (!b.ok()) return {};
  const auto number = static_cast<int64_t>(Exchanges(b.graph()).size());
  return b.Add(kAllReduceMean, {x}, {{kExchange, number}});
}

}  // namespace tfjob::graph
