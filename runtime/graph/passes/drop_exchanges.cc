#include "runtime/graph/op.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {

Graph DropExchanges(const Graph& graph) {
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (FindOp(node.op)->effect == Effect::kExchange) {
      rewriter.Replace({id, 0}, rewriter.Now(node.inputs[0]));
    } else {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
