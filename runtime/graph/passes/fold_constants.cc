#include <algorithm>
#include <string>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

constexpr int64_t kMaxFoldedElements = 64 * 1024;

bool IsSmall(const Node& node) {
  return std::ranges::all_of(node.outputs, [](const TensorType& type) {
    return type.shape.num_elements() <= kMaxFoldedElements;
  });
}

bool IsConst(const Graph& graph, Output output) {
  return graph.node(output).op == "Const";
}

// Returns whether the node may be replaced with constants. Nodes without inputs are not folded,
// because they already are sources. Random ops, which have the attribute op_id, are not folded,
// because their step and seed are fed at each run. Scans are not folded, because the evaluator can
// only run individual kernels.
bool MayFold(const Graph& now, const Node& node, const std::vector<Output>& inputs) {
  return !inputs.empty() && IsPure(node) && node.op != "Scan" &&
         !node.attributes.Find<int64_t>("op_id") && IsSmall(node) &&
         std::ranges::all_of(inputs, [&](Output input) { return IsConst(now, input); });
}

}  // namespace

StatusOr<Graph> FoldConstants(const Graph& graph, const Evaluator& evaluate) {
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    const std::vector<Output> inputs = rewriter.Now(node.inputs);
    if (!MayFold(rewriter.graph(), node, inputs)) {
      rewriter.Copy(id);
      continue;
    }
    std::vector<Tensor> values;
    for (Output input : inputs) {
      values.push_back(*rewriter.graph().node(input).attributes.Find<Tensor>("value"));
    }
    auto folded = evaluate(node, values);
    if (!folded.ok()) return Annotate(folded.status(), "folding node " + node.name);
    for (int i = 0; i < static_cast<int>(folded->size()); ++i) {
      Tensor& value = (*folded)[static_cast<size_t>(i)];
      const std::string suffix = i == 0 ? "" : StrCat("/", i);
      rewriter.Replace({id, i},
                       rewriter.Append(id, "Const", {}, {{"value", std::move(value)}}, suffix));
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
