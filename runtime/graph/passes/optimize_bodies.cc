#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/graph/subgraph.h"

namespace tfjob::graph {

StatusOr<Graph> OptimizeBodies(const Graph& graph, const Evaluator& evaluate) {
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    const Graph* body = Subgraph::Find(node.attributes, "body");
    if (body == nullptr) {
      rewriter.Copy(id);
      continue;
    }
    StatusOr<Graph> optimized = Optimize(*body, evaluate);
    if (!optimized.ok()) return Annotate(optimized.status(), "the body of node " + node.name);
    Attributes attributes = node.attributes;
    attributes.Set("body", Subgraph::Of(*std::move(optimized)));
    const Output scan =
        rewriter.Append(id, node.op, rewriter.Now(node.inputs), std::move(attributes));
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i)
      rewriter.Replace({id, i}, {scan.node, i});
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
