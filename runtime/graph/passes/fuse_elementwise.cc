#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

#include "runtime/graph/family.h"
#include "runtime/graph/op.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/constants.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// Limit the size of a group: the kernel (kernels/cpu/fused.cc) accepts at most 8 one-element inputs
// and 24 steps.
constexpr size_t kMaxInputs = 8;
constexpr size_t kMaxSteps = 16;

std::string Number(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

bool IsFusible(const Node& node) {
  const Op* op = FindOp(node.op);
  const bool floats = !node.outputs.empty() && IsFloat(node.outputs[0].dtype);
  return op != nullptr && op->elementwise && floats;
}

// Returns whether the kernel can read the input: the input must have the output's shape, only the
// output's last dimension, or a single element.
bool IsReadable(const Shape& input, const Shape& output) {
  if (input == output || input.num_elements() == 1) return true;
  return input.rank() == 1 && output.rank() > 1 && input.dim(0) == output.dim(-1);
}

bool ReadsReadable(const Graph& graph, const Node& node, const Shape& shape) {
  for (Output input : node.inputs) {
    if (!IsReadable(graph.type(input).shape, shape)) return false;
  }
  return true;
}

// Collects nodes that a single kernel can compute. The output of the root node is the group's
// output. All other nodes have the same type as the root, and are used only within the group.
class Group {
 public:
  Group(const Graph& graph, const std::vector<std::set<int>>& users, const std::set<int>& taken,
        int root)
      : graph_(graph), root_(root) {
    const TensorType& type = graph.node(root).outputs[0];
    if (!ReadsReadable(graph, graph.node(root), type.shape)) return;
    nodes_.insert(root);
    std::set<int> candidates = InputsOf(root);
    while (!candidates.empty()) {
      const int id = *candidates.rbegin();  // the last one; all of its users were considered
      candidates.erase(id);
      const Node& node = graph.node(id);
      const bool inside = std::ranges::includes(nodes_, users[static_cast<size_t>(id)]);
      if (taken.contains(id) || !inside || !IsFusible(node) || node.outputs[0] != type ||
          node.device != graph.node(root).device || !ReadsReadable(graph, node, type.shape)) {
        continue;
      }
      nodes_.insert(id);
      if (nodes_.size() > kMaxSteps || InputsNeeded() > kMaxInputs) {
        nodes_.erase(id);
        continue;
      }
      candidates.merge(InputsOf(id));
    }
    if (InputsNeeded() == 0) nodes_.clear();
  }

  const std::set<int>& nodes() const { return nodes_; }

  void Append(Rewriter& rewriter) const {
    std::vector<Output> inputs;
    std::map<int, size_t> step;
    std::string program;
    for (int id : nodes_) {
      const Node& node = graph_.node(id);
      if (!program.empty()) program += "; ";
      program += node.op;
      for (Output input : node.inputs) program += " " + Operand(input, step, &inputs);
      if (node.op == "ClipByValue") {
        program += " " + Number(node.attributes.Get("clip_value_min", 0.0)) + " " +
                   Number(node.attributes.Get("clip_value_max", 0.0));
      }
      const size_t number = step.size();
      step[id] = number;
    }
    const Output fused =
        rewriter.Append(root_, "FusedElementwise", rewriter.Now(inputs),
                        {{"program", program}, {"shape", graph_.node(root_).outputs[0].shape}});
    rewriter.Replace({root_, 0}, fused);
  }

 private:
  std::set<int> InputsOf(int id) const {
    std::set<int> ids;
    for (Output input : graph_.node(id).inputs) ids.insert(input.node);
    return ids;
  }

  // Returns whether the input is a constant with one element, which becomes a literal in the
  // program.
  bool IsInline(Output input) const {
    return graph_.type(input).shape.num_elements() == 1 && UniformValue(graph_, input).has_value();
  }

  size_t InputsNeeded() const {
    std::set<Output> inputs;
    for (int id : nodes_) {
      for (Output input : graph_.node(id).inputs) {
        if (!nodes_.contains(input.node) && !IsInline(input)) inputs.insert(input);
      }
    }
    return inputs.size();
  }

  std::string Operand(Output input, const std::map<int, size_t>& step,
                      std::vector<Output>* inputs) const {
    if (nodes_.contains(input.node)) return StrCat("t", step.at(input.node));
    if (IsInline(input)) return Number(*UniformValue(graph_, input));
    auto found = std::ranges::find(*inputs, input);
    const auto position = found - inputs->begin();
    if (found == inputs->end()) inputs->push_back(input);
    return StrCat("i", position);
  }

  const Graph& graph_;
  int root_;
  std::set<int> nodes_;
};

// Returns, for each node, the positions of the nodes that use its outputs. If an output is fetched,
// the users include -1, which belongs to no group.
std::vector<std::set<int>> UsersOf(const Graph& graph) {
  std::vector<std::set<int>> users(graph.nodes().size());
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    for (Output input : graph.node(id).inputs) users[static_cast<size_t>(input.node)].insert(id);
  }
  for (const Fetch& fetch : graph.fetches()) {
    users[static_cast<size_t>(fetch.output.node)].insert(-1);
  }
  return users;
}

}  // namespace

Graph FuseElementwise(const Graph& graph) {
  const std::vector<std::set<int>> users = UsersOf(graph);
  std::map<int, Group> groups;  // keyed by root
  std::set<int> taken;
  for (int id = static_cast<int>(graph.nodes().size()) - 1; id >= 0; --id) {
    if (taken.contains(id) || !IsFusible(graph.node(id))) continue;
    Group group(graph, users, taken, id);
    if (group.nodes().size() < 2) continue;
    taken.insert(group.nodes().begin(), group.nodes().end());
    groups.emplace(id, std::move(group));
  }
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (const auto group = groups.find(id); group != groups.end()) {
      group->second.Append(rewriter);
    } else if (!taken.contains(id)) {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
