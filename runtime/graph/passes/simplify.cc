#include <optional>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/constants.h"
#include "runtime/graph/passes/device_boundaries.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

bool Is(Output constant, const Graph& graph, double value) {
  return UniformValue(graph, constant) == value;
}

// Returns x if the node is x·1, x+0, x-0 or x/1, and x has the type of the result.
std::optional<Output> DropNeutral(const Graph& now, const Node& node,
                                  const std::vector<Output>& inputs) {
  const bool commutes = node.op == "Mul" || node.op == "Add";
  if (!commutes && node.op != "Sub" && node.op != "Div") return std::nullopt;
  const double neutral = node.op == "Mul" || node.op == "Div" ? 1 : 0;
  if (Is(inputs[1], now, neutral) && now.type(inputs[0]) == node.outputs[0]) return inputs[0];
  if (commutes && Is(inputs[0], now, neutral) && now.type(inputs[1]) == node.outputs[0]) {
    return inputs[1];
  }
  return std::nullopt;
}

// Returns the node's input if the op would return this input unchanged.
std::optional<Output> DropNoOp(const Graph& now, const Node& node,
                               const std::vector<Output>& inputs) {
  if (IsDeviceBoundary(node)) return std::nullopt;
  const bool keeps = node.op == "Identity" || node.op == "Reshape" || node.op == "BroadcastTo" ||
                     node.op == "Cast";
  if (keeps && now.type(inputs[0]) == node.outputs[0]) return inputs[0];
  return std::nullopt;
}

// Replaces a constant operand with a scalar if all of its elements are equal and the result has the
// type of the other operand. Returns whether an operand was replaced.
bool ShrinkUniform(const Node& node, int id, Rewriter& rewriter, std::vector<Output>& inputs) {
  const bool binary = node.op == "Mul" || node.op == "Add" || node.op == "Sub" ||
                      node.op == "Div" || node.op == "Maximum" || node.op == "Minimum";
  if (!binary) return false;
  for (size_t i = 0; i < 2; ++i) {
    const Graph& now = rewriter.graph();
    const std::optional<double> value = UniformValue(now, inputs[i]);
    if (!value || now.type(inputs[i]).shape.rank() == 0) continue;
    if (now.type(inputs[1 - i]) != node.outputs[0]) continue;
    const std::optional<Tensor> scalar = ScalarOf(node.outputs[0].dtype, *value);
    if (!scalar) continue;
    inputs[i] = rewriter.Append(id, "Const", {}, {{"value", *scalar}}, "/scalar");
    return true;
  }
  return false;
}

}  // namespace

Graph Simplify(const Graph& graph) {
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    std::vector<Output> inputs = rewriter.Now(node.inputs);
    std::optional<Output> same = DropNeutral(rewriter.graph(), node, inputs);
    if (!same) same = DropNoOp(rewriter.graph(), node, inputs);
    if (same) {
      rewriter.Replace({id, 0}, *same);
    } else if (ShrinkUniform(node, id, rewriter, inputs)) {
      rewriter.Replace({id, 0}, rewriter.Append(id, node.op, inputs, node.attributes));
    } else {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
