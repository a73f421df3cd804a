#include <map>
#include <optional>
#include <set>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// A sum of a product and another value.
struct ProductSum {
  int product = -1;
  Output added;
};

// Returns the value in whose memory a plan may store this value.
Output BaseOf(const Graph& graph, Output value) {
  while (graph.node(value).op == "Reshape" || graph.node(value).op == "Identity")
    value = graph.node(value).inputs[0];
  return value;
}

std::optional<ProductSum> ProductSumAt(const Graph& graph, const std::map<Output, int>& uses,
                                       int id) {
  const Node& node = graph.node(id);
  if (node.op != "Add") return std::nullopt;
  // If both are products, the second one is fused, so that the first one is computed before it.
  const size_t later = node.inputs[0].node < node.inputs[1].node ? 1 : 0;
  for (const size_t i : {later, 1 - later}) {
    const Output value = node.inputs[i], added = node.inputs[1 - i];
    const Node& product = graph.node(value);
    const bool fits = product.op == "MatMul" && uses.at(value) == 1 &&
                      !product.attributes.Get("transpose_a", false) &&
                      graph.type(added) == graph.type(value) && product.device == node.device;
    if (!fits) continue;
    // The sum may replace the added value, which the product must then not read.
    const Output base = BaseOf(graph, added);
    if (base == BaseOf(graph, product.inputs[0]) || base == BaseOf(graph, product.inputs[1]))
      continue;
    return ProductSum{value.node, added};
  }
  return std::nullopt;
}

}  // namespace

Graph FuseProductSum(const Graph& graph) {
  const std::map<Output, int> uses = CountUses(graph);
  std::map<int, ProductSum> sums;
  std::set<int> absorbed;
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const auto sum = ProductSumAt(graph, uses, id);
    if (!sum) continue;
    sums[id] = *sum;
    absorbed.insert(sum->product);
  }
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (const auto found = sums.find(id); found != sums.end()) {
      const Node& product = graph.node(found->second.product);
      std::vector<Output> inputs = product.inputs;
      inputs.push_back(found->second.added);
      rewriter.Replace({id, 0},
                       rewriter.Append(id, "MatMulAdd", rewriter.Now(inputs), product.attributes));
    } else if (!absorbed.contains(id)) {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
