#include <utility>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// Returns the largest share of the elements of `value` that are not 0, as far as it is known.
double DensityOf(const Graph& graph, Output value) {
  const Node& node = graph.node(value);
  if (node.op == "ReluGrad") return DensityOf(graph, node.inputs[0]);
  if (node.op != "MaxPoolGrad") return 1;
  // Each window gives its gradient to one element.
  return static_cast<double>(graph.type(node.inputs[2]).shape.num_elements()) /
         static_cast<double>(graph.type(value).shape.num_elements());
}

}  // namespace

Graph MarkSparseGradients(const Graph& graph) {
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    const bool gradient = node.op == "Conv2DBackpropInput" || node.op == "Conv2DBackpropFilter";
    const double density = gradient ? DensityOf(graph, node.inputs[1]) : 1;
    if (density >= 1) {
      rewriter.Copy(id);
      continue;
    }
    Attributes attributes = node.attributes;
    attributes.Set("dy_density", density);
    rewriter.Replace(
        {id, 0}, rewriter.Append(id, node.op, rewriter.Now(node.inputs), std::move(attributes)));
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
