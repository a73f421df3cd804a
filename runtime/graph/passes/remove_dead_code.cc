#include "runtime/graph/op.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {

Graph RemoveDeadCode(const Graph& graph) {
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<bool> live(static_cast<size_t>(count), false);
  for (const Fetch& fetch : graph.fetches()) live[static_cast<size_t>(fetch.output.node)] = true;
  for (int id = count - 1; id >= 0; --id) {
    const Effect effect = FindOp(graph.node(id).op)->effect;
    const bool kept =
        effect == Effect::kWrite || effect == Effect::kFeed || effect == Effect::kExchange;
    if (kept) live[static_cast<size_t>(id)] = true;
    if (!live[static_cast<size_t>(id)]) continue;
    for (Output input : graph.node(id).inputs) live[static_cast<size_t>(input.node)] = true;
  }
  Rewriter rewriter(graph);
  for (int id = 0; id < count; ++id) {
    if (live[static_cast<size_t>(id)]) rewriter.Copy(id);
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
