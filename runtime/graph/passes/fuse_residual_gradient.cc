#include <map>
#include <optional>
#include <vector>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// A sum of the gradient that a LayerNormalizationGrad computes, and a gradient that was computed
// before it: that of the connection around the layers that follow the normalization.
struct ResidualSum {
  int gradient = -1;  // the LayerNormalizationGrad
  int sum = -1;
  Output added;
};

std::optional<ResidualSum> FindSum(const Graph& graph, const std::map<Output, int>& uses, int id) {
  const Node& node = graph.node(id);
  if (node.op != "Add") return std::nullopt;
  for (const size_t i : {0, 1}) {
    const Output dx = node.inputs[i], added = node.inputs[1 - i];
    const Node& gradient = graph.node(dx);
    const bool fits = gradient.op == "LayerNormalizationGrad" && dx.index == 0 &&
                      gradient.inputs.size() == 4 && uses.at(dx) == 1 &&
                      graph.type(added) == graph.type(dx) && added.node < dx.node &&
                      gradient.device == node.device;
    if (fits) return ResidualSum{dx.node, id, added};
  }
  return std::nullopt;
}

}  // namespace

Graph FuseResidualGradient(const Graph& graph) {
  const std::map<Output, int> uses = CountUses(graph);
  std::map<int, ResidualSum> by_gradient;
  std::map<int, int> gradient_of;  // by sum
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const auto found = FindSum(graph, uses, id);
    if (!found) continue;
    by_gradient[found->gradient] = *found;
    gradient_of[id] = found->gradient;
  }
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (const auto found = by_gradient.find(id); found != by_gradient.end()) {
      std::vector<Output> inputs = node.inputs;
      inputs.push_back(found->second.added);
      const Output fused = rewriter.Append(id, node.op, rewriter.Now(inputs), node.attributes);
      for (const int output : {0, 1, 2}) rewriter.Replace({id, output}, {fused.node, output});
    } else if (const auto sum = gradient_of.find(id); sum != gradient_of.end()) {
      rewriter.Replace({id, 0}, rewriter.Now(Output{sum->second, 0}));
    } else {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
