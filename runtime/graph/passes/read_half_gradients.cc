#include <map>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {

Graph ReadHalfGradients(const Graph& graph) {
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    const Node* const cast = node.op == "ApplyOptimizer" ? &graph.node(node.inputs[0]) : nullptr;
    const bool reads_half = cast != nullptr && cast->op == "Cast" &&
                            cast->outputs[0].dtype == DType::kFloat32 &&
                            IsHalf(graph.type(cast->inputs[0]).dtype);
    if (reads_half) {
      rewriter.Append(id, node.op, rewriter.Now(std::vector{cast->inputs[0], node.inputs[1]}),
                      node.attributes);
    } else {
      rewriter.Copy(id);
    }
  }
  return RemoveDeadCode(std::move(rewriter).Finish());
}

}  // namespace tfjob::graph
