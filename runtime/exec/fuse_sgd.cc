#include "runtime/exec/fuse_sgd.h"

#include <map>
#include <utility>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/half.h"

namespace tfjob::exec {
namespace {

using graph::Graph;
using graph::Node;
using graph::Output;

bool IsPlainSgd(const Node& node) {
  if (node.op != "ApplyOptimizer") return false;
  auto optimizer = optimizer::FromAttributes(node.attributes);
  return optimizer.ok() && optimizer->kind == optimizer::Kind::kSgd &&
         optimizer->schedule.decay == optimizer::Decay::kNone && optimizer->weight_decay == 0 &&
         optimizer::SlotCount(*optimizer) == 0 &&
         node.attributes.Find<std::string>("constraint") == nullptr;
}

// Returns the MatMul that computes the gradient of the plain SGD step `apply`. Returns null if
// `apply` is not a plain SGD step, or if its gradient is not the output of a MatMul, has another
// use, or has no more than `ignored` bytes. If `half_factors` is set, the gradient may also be
// converted from such an output in a half type.
const Node* ProductOf(const Graph& graph, const std::map<Output, int>& uses, const Node& apply,
                      size_t ignored, bool half_factors) {
  if (!IsPlainSgd(apply)) return nullptr;
  Output gradient = apply.inputs[0];
  const graph::TensorType& type = graph.type(gradient);
  if (static_cast<size_t>(type.shape.num_elements()) * SizeOf(type.dtype) <= ignored)
    return nullptr;
  const Node& last = graph.node(gradient);
  if (half_factors && last.op == "Cast" && uses.at(gradient) == 1 &&
      type.dtype == DType::kFloat32 && IsHalf(graph.type(last.inputs[0]).dtype))
    gradient = last.inputs[0];
  const Node& product = graph.node(gradient);
  return product.op == "MatMul" && uses.at(gradient) == 1 ? &product : nullptr;
}

}  // namespace

Graph FuseSgd(const Graph& graph, size_t ignored, bool half_factors) {
  const std::map<Output, int> uses = graph::CountUses(graph);
  graph::Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    const Node* product = ProductOf(graph, uses, node, ignored, half_factors);
    if (product == nullptr) {
      rewriter.Copy(id);
      continue;
    }
    Attributes attributes = product->attributes;
    attributes.Set("variable", node.attributes.Get("variable", std::string()));
    attributes.Set("alpha", -optimizer::FromAttributes(node.attributes)->learning_rate);
    rewriter.Append(id, "MatMulAccumulate", rewriter.Now(product->inputs), std::move(attributes));
  }
  return graph::RemoveDeadCode(std::move(rewriter).Finish());
}

}  // namespace tfjob::exec
