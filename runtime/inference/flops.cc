#include "runtime/inference/flops.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "runtime/graph/scan.h"

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

// Returns the number of products that the node computes and adds up, or nullopt if the op does not
// compute sums of products.
std::optional<double> Products(const graph::Graph& graph, const graph::Node& node) {
  const Shape& output = node.outputs[0].shape;
  const auto input = [&](size_t i) -> const Shape& { return graph.type(node.inputs[i]).shape; };
  // The shape of a convolution's filter is [height, width, channels, filters].
  const auto per_filter = [](const Shape& filter) {
    return Elements(filter) / std::max(static_cast<double>(filter.dim(-1)), 1.0);
  };
  if (node.op == "Conv2D") return Elements(output) * per_filter(input(1));
  if (node.op == "Conv2DBackpropInput") return Elements(input(1)) * per_filter(input(0));
  // Each element of the first operand is multiplied by all elements of one row of the second
  // operand.
  if (node.op == "MatMul") return Elements(input(0)) * static_cast<double>(output.dim(-1));
  if (node.op == "BatchMatMulV2") {
    const int summed = node.attributes.Get("adj_x", false) ? -2 : -1;
    return Elements(output) * static_cast<double>(input(0).dim(summed));
  }
  return std::nullopt;
}

}  // namespace

double FloatingPointOperations(const graph::Graph& graph) {
  double count = 0;
  for (const graph::Node& node : graph.nodes()) {
    if (OnlyMoves(node.op)) continue;
    if (node.op == "Scan") {
      const StatusOr<graph::ScanForm> form = graph::ScanFormOf(node.attributes);
      if (form.ok())
        count += static_cast<double>(form->steps) * FloatingPointOperations(*form->body);
      continue;
    }
    const std::optional<double> products = Products(graph, node);
    count += products ? 2 * *products : Elements(node.outputs[0].shape);
  }
  return count;
}

}  // namespace tfjob::inference
