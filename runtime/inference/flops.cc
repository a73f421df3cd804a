#include "runtime/inference/flops.h"

#include <set>
#include <string_view>

namespace tfjob::inference {
namespace {

double Elements(const Shape& shape) {
  double elements = 1;
  for (int64_t dim : shape.dims()) elements *= static_cast<double>(dim);
  return elements;
}

bool OnlyMoves(std::string_view op) {
  static const std::set<std::string_view> kMoves = {
      "Placeholder", "Const", "ReadVariable", "Identity", "Reshape", "Transpose", "BroadcastTo",
      "Concat",      "Slice", "Pad",          "Cast",     "Gather",  "Assign",    "Reverse"};
  return kMoves.contains(op);
}

// Returns the products per element of the output: the size of what is summed.
double Products(const graph::Graph& graph, const graph::Node& node) {
  const Shape& second = graph.type(node.inputs[1]).shape;
  if (node.op == "Conv2D") {  // the kernel is [height, width, channels, filters]
    return Elements(second) / static_cast<double>(second.dim(-1));
  }
  // The product of [m, k] and [k, n]: the first operand has k elements per row of the output.
  const Shape& output = node.outputs[0].shape;
  return Elements(graph.type(node.inputs[0]).shape) * static_cast<double>(output.dim(-1)) /
         Elements(output);
}

}  // namespace

double FloatingPointOperations(const graph::Graph& graph) {
  double count = 0;
  for (const graph::Node& node : graph.nodes()) {
    if (OnlyMoves(node.op)) continue;
    const double elements = Elements(node.outputs[0].shape);
    const bool products = node.op == "MatMul" || node.op == "BatchMatMul" || node.op == "Conv2D";
    count += products ? 2 * elements * Products(graph, node) : elements;
  }
  return count;
}

}  // namespace tfjob::inference
