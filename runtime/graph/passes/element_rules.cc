#include "runtime/graph/passes/element_rules.h"

#include <algorithm>
#include <string>

#include "runtime/graph/family.h"
#include "runtime/graph/op.h"
#include "runtime/graph/passes/constants.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

// Returns whether programs may read and write this type together with others.
bool MayMix(DType dtype) {
  return dtype == DType::kFloat32 || IsHalf(dtype);
}

size_t BytesOf(const TensorType& type) {
  return static_cast<size_t>(type.shape.num_elements()) * SizeOf(type.dtype);
}

// Returns the positions of the users of each node.
std::vector<std::set<int>> FindUsers(const Graph& graph) {
  std::vector<std::set<int>> users(graph.nodes().size());
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id)
    for (const Output input : graph.node(id).inputs)
      users[static_cast<size_t>(input.node)].insert(id);
  for (const Fetch& fetch : graph.fetches())
    users[static_cast<size_t>(fetch.output.node)].insert(-1);
  return users;
}

}  // namespace

ElementRules::ElementRules(const Graph& graph, Fusion fusion)
    : graph_(graph), fusion_(fusion), users_(FindUsers(graph)) {
  for (const Node& node : graph.nodes()) fusible_.push_back(FindFusible(node));
}

bool ElementRules::IsView(int id) const {
  const std::string& op = graph_.node(id).op;
  return op == "Cast" || op == "BroadcastTo";
}

bool ElementRules::IsDropout(int id) const {
  const std::string& op = graph_.node(id).op;
  return op == "Dropout" || op == "DropoutGrad";
}

std::vector<Output> ElementRules::OperandsOf(int id) const {
  const Node& node = graph_.node(id);
  if (IsDropout(id)) return {node.inputs[0]};
  return node.inputs;
}

bool ElementRules::IsReadable(const Shape& input, const Shape& output) const {
  if (input == output || input.num_elements() == 1) return true;
  if (input.rank() == 1 && output.rank() > 1 && input.dim(0) == output.dim(-1)) return true;
  if (fusion_ != Fusion::kRecompute || input.rank() != output.rank()) return false;
  std::vector<int64_t> column = output.dims();
  column.back() = 1;
  return input == Shape(column);
}

bool ElementRules::FindFusible(const Node& node) const {
  const Op* const op = FindOp(node.op);
  if (op == nullptr || node.outputs.empty() || !IsFloat(node.outputs[0].dtype)) return false;
  const TensorType& type = node.outputs[0];
  const bool recompute = fusion_ == Fusion::kRecompute;
  const bool random = node.op == "Dropout" || node.op == "DropoutGrad";
  const bool view = node.op == "Cast" || node.op == "BroadcastTo";
  if (!op->elementwise && !(recompute && (random || view))) return false;
  const size_t operands = random ? 1 : node.inputs.size();
  return std::all_of(
      node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(operands),
      [&](Output input) {
        const TensorType& from = graph_.type(input);
        if (!IsReadable(from.shape, type.shape)) return false;
        return from.dtype == type.dtype || (MayMix(from.dtype) && MayMix(type.dtype));
      });
}

bool ElementRules::IsNarrowing(int id) const {
  const Node& node = graph_.node(id);
  return node.op == "Cast" && IsHalf(node.outputs[0].dtype);
}

bool ElementRules::MayJoin(int id, int root) const {
  if (!IsFusible(id)) return false;
  const Node &node = graph_.node(id), &last = graph_.node(root);
  const TensorType &type = node.outputs[0], &result = last.outputs[0];
  if (node.device != last.device || type.shape != result.shape) return false;
  if (fusion_ == Fusion::kOnce) return type == result;
  // Only the result of a program is rounded.
  return MayMix(type.dtype) && MayMix(result.dtype) && !IsNarrowing(id);
}

bool ElementRules::IsInline(Output value) const {
  return graph_.type(value).shape.num_elements() == 1 && UniformValue(graph_, value).has_value();
}

double ElementRules::ValueOf(Output value) const {
  return UniformValue(graph_, value).value_or(0);
}

bool ElementRules::IsStored(int id) const {
  return std::ranges::any_of(UsersOf(id), [&](int user) {
    return user < 0 || !IsFusible(user) || ShapeOf(user) != ShapeOf(id);
  });
}

bool ElementRules::PaysToCompute(int id, const std::set<int>& nodes,
                                 const std::set<Output>& inputs) const {
  if (fusion_ != Fusion::kRecompute) return false;
  // The inputs of the node, and of the nodes before it that a program could contain, too.
  std::set<Output> leaves;
  std::set<int> visited, pending = {id};
  while (!pending.empty()) {
    const int at = *pending.rbegin();
    pending.erase(at);
    if (static_cast<int>(visited.size()) >= most_steps()) return false;
    visited.insert(at);
    for (const Output input : OperandsOf(at)) {
      if (nodes.contains(input.node) || inputs.contains(input) || IsInline(input)) continue;
      if (MayJoin(input.node, id) && !IsStored(input.node)) {
        pending.insert(input.node);
      } else {
        leaves.insert(input);
      }
    }
  }
  size_t bytes = 0;
  for (const Output leaf : leaves) {
    // The variable may change before the program runs.
    if (FindOp(graph_.node(leaf).op)->effect == Effect::kRead) return false;
    bytes += BytesOf(graph_.type(leaf));
  }
  const size_t saved = BytesOf(graph_.node(id).outputs[0]);
  return IsStored(id) ? bytes < saved : bytes <= saved;
}

}  // namespace tfjob::graph
