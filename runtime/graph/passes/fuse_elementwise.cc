#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/element_rules.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

std::string Number(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

// Collects nodes that a single kernel can compute. The output of the root node is the group's
// output. All other nodes are used only within the group, or are also computed elsewhere.
class Group {
 public:
  Group(const ElementRules& rules, int root) : rules_(rules), graph_(rules.graph()), root_(root) {
    if (!rules.IsRoot(root)) return;
    nodes_.insert(root);
    std::set<int> candidates = InputsOf(root);
    while (!candidates.empty()) {
      const int id = *candidates.rbegin();  // the last one; all of its users were considered
      candidates.erase(id);
      if (!rules.MayJoin(id, root) || !SharesWords(id) || !Owns(id)) continue;
      nodes_.insert(id);
      if (Steps() > rules.most_steps() || ExternalInputs().size() > ElementRules::kMostInputs) {
        nodes_.erase(id);
        continue;
      }
      candidates.merge(InputsOf(id));
    }
    if (ExternalInputs().empty() || Steps() == 0) nodes_.clear();
  }

  const std::set<int>& nodes() const { return nodes_; }

  // Returns the values that the kernel reads, except for inline numbers and random words.
  std::set<Output> ExternalInputs() const {
    std::set<Output> inputs;
    for (const int id : nodes_) {
      for (const Output input : rules_.OperandsOf(id))
        if (!nodes_.contains(input.node) && !rules_.IsInline(input)) inputs.insert(input);
    }
    return inputs;
  }

  void Append(Rewriter& rewriter) const {
    std::vector<Output> inputs;
    std::map<int, size_t> step;
    std::string program;
    for (const int id : nodes_) {
      if (rules_.IsView(id)) continue;
      program += (program.empty() ? "" : "; ") + StepOf(id, step, &inputs);
      const size_t number = step.size();
      step[id] = number;
    }
    std::vector<Output> all = rewriter.Now(inputs);
    const TensorType& type = graph_.node(root_).outputs[0];
    Attributes attributes = {{"program", program}, {"shape", type.shape}};
    const int dropout = Dropout();
    const bool mixed = std::ranges::any_of(
        inputs, [&](Output input) { return graph_.type(input).dtype != type.dtype; });
    if (mixed || dropout >= 0) attributes.Set("dtype", type.dtype);
    if (dropout >= 0) {
      const Node& node = graph_.node(dropout);
      for (const size_t word : {1, 2}) all.push_back(rewriter.Now(node.inputs[word]));
      attributes.Set("random", true);
      if (const int64_t replica = node.attributes.Get("replica", int64_t{0}); replica != 0)
        attributes.Set("replica", replica);
    }
    rewriter.Replace({root_, 0}, rewriter.Append(root_, "FusedElementwise", std::move(all),
                                                 std::move(attributes)));
  }

 private:
  std::set<int> InputsOf(int id) const {
    std::set<int> ids;
    for (const Output input : rules_.OperandsOf(id)) ids.insert(input.node);
    return ids;
  }

  int Steps() const {
    return static_cast<int>(
        std::ranges::count_if(nodes_, [&](int id) { return !rules_.IsView(id); }));
  }

  // Returns a node of the group that drops elements, or -1.
  int Dropout() const {
    const auto found = std::ranges::find_if(nodes_, [&](int id) { return rules_.IsDropout(id); });
    return found == nodes_.end() ? -1 : *found;
  }

  // Returns whether the node draws from the same random words as the rest of the group.
  bool SharesWords(int id) const {
    const int other = Dropout();
    if (!rules_.IsDropout(id) || other < 0) return true;
    const Node &a = graph_.node(id), &b = graph_.node(other);
    return a.inputs[1] == b.inputs[1] && a.inputs[2] == b.inputs[2] &&
           a.attributes.Get("replica", int64_t{0}) == b.attributes.Get("replica", int64_t{0});
  }

  // Returns whether nothing outside the group uses the node, or it pays to compute it again.
  bool Owns(int id) const {
    return std::ranges::includes(nodes_, rules_.UsersOf(id)) ||
           rules_.PaysToCompute(id, nodes_, ExternalInputs());
  }

  std::string StepOf(int id, const std::map<int, size_t>& step, std::vector<Output>* inputs) const {
    const Node& node = graph_.node(id);
    std::string text = rules_.IsDropout(id) ? "Dropout" : node.op;
    for (const Output input : rules_.OperandsOf(id)) text += " " + Operand(input, step, inputs);
    if (node.op == "ClipByValue") {
      text += " " + Number(node.attributes.Get("clip_value_min", 0.0)) + " " +
              Number(node.attributes.Get("clip_value_max", 0.0));
    }
    if (rules_.IsDropout(id)) {
      text += StrCat(" ", Number(node.attributes.Get("rate", 0.0)), " ",
                     node.attributes.Get("op_id", int64_t{0}));
    }
    return text;
  }

  std::string Operand(Output input, const std::map<int, size_t>& step,
                      std::vector<Output>* inputs) const {
    while (nodes_.contains(input.node) && rules_.IsView(input.node))
      input = graph_.node(input.node).inputs[0];
    if (nodes_.contains(input.node)) return StrCat("t", step.at(input.node));
    if (rules_.IsInline(input)) return Number(rules_.ValueOf(input));
    auto found = std::ranges::find(*inputs, input);
    const auto position = found - inputs->begin();
    if (found == inputs->end()) inputs->push_back(input);
    return StrCat("i", position);
  }

  const ElementRules& rules_;
  const Graph& graph_;
  int root_;
  std::set<int> nodes_;
};

// Divides the nodes into groups, from the last node to the first.
class Grouping {
 public:
  Grouping(const Graph& graph, Fusion fusion) : rules_(graph, fusion) {
    for (const Fetch& fetch : graph.fetches()) read_.insert(fetch.output);
    for (int id = static_cast<int>(graph.nodes().size()) - 1; id >= 0; --id) Add(id);
  }

  // Returns the group whose output this node computes, or null.
  const Group* GroupOf(int id) const {
    const auto found = groups_.find(id);
    return found == groups_.end() ? nullptr : &found->second;
  }
  // Returns whether nothing reads the node's output, because only groups that compute it use it.
  bool IsAbsorbed(int id) const { return absorbed_.contains(id); }

 private:
  void Add(int id) {
    const Node& node = rules_.graph().node(id);
    if (rules_.IsFusible(id)) {
      // A node without users is dead code, which other passes remove.
      if (!read_.contains({id, 0}) && !rules_.UsersOf(id).empty()) {
        absorbed_.insert(id);
        return;
      }
      Group group(rules_, id);
      if (group.nodes().size() >= 2) {
        read_.merge(group.ExternalInputs());
        groups_.emplace(id, std::move(group));
        return;
      }
    }
    read_.insert(node.inputs.begin(), node.inputs.end());
  }

  const ElementRules rules_;
  std::map<int, Group> groups_;  // keyed by root
  std::set<Output> read_;        // by nodes outside groups, groups and fetches
  std::set<int> absorbed_;
};

}  // namespace

Graph FuseElementwise(const Graph& graph, Fusion fusion) {
  const Grouping grouping(graph, fusion);
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (const Group* const group = grouping.GroupOf(id)) {
      group->Append(rewriter);
    } else if (!grouping.IsAbsorbed(id)) {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
