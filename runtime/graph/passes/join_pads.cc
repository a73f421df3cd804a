#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// Describes a block of the result: the input of a Pad, and its start and end along the padded axis.
struct PaddedBlock {
  Output value;
  size_t axis = 0;
  int64_t begin = 0, end = 0;
};

// Returns the block of a Pad along exactly one axis, and nullopt for any other node.
std::optional<PaddedBlock> BlockOf(const Graph& graph, const Node& node) {
  if (node.op != "Pad") return std::nullopt;
  const auto before = node.attributes.Get("before", std::vector<int64_t>());
  const auto after = node.attributes.Get("after", std::vector<int64_t>());
  std::optional<PaddedBlock> block;
  for (size_t axis = 0; axis < before.size(); ++axis) {
    if (before[axis] == 0 && after[axis] == 0) continue;
    if (block) return std::nullopt;
    const int64_t size = graph.type(node.inputs[0]).shape.dims()[axis];
    block = {node.inputs[0], axis, before[axis], before[axis] + size};
  }
  return block;
}

// Represents a sum of several terms: a node, together with the preceding Adds that are used only in
// this sum.
class PaddedSum {
 public:
  PaddedSum(const Graph& graph, const std::map<Output, int>& uses, int root)
      : graph_(graph), uses_(uses), device_(graph.node(root).device) {
    joins_ = Collect(root) && Cover(graph.node(root).outputs[0].shape);
  }

  // Returns whether the terms are blocks that together cover each element of the result exactly
  // once.
  bool joins() const { return joins_; }
  const std::set<int>& adds() const { return adds_; }
  int64_t axis() const { return static_cast<int64_t>(blocks_[0].axis); }
  std::vector<Output> values() const {
    std::vector<Output> values;
    for (const PaddedBlock& block : blocks_) values.push_back(block.value);
    return values;
  }

 private:
  // Collects the terms. Returns false if a term is not a padded block.
  bool Collect(int root) {
    std::vector<int> open = {root};
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      adds_.insert(id);
      for (const Output input : graph_.node(id).inputs) {
        const Node& node = graph_.node(input);
        if (node.outputs[0] != graph_.node(root).outputs[0] || node.device != device_) return false;
        if (node.op == "Add" && uses_.at(input) == 1) {
          open.push_back(input.node);
          continue;
        }
        const std::optional<PaddedBlock> block = BlockOf(graph_, node);
        if (!block) return false;
        blocks_.push_back(*block);
      }
    }
    return true;
  }

  bool Cover(const Shape& result) {
    std::ranges::sort(blocks_, {},
                      [](const PaddedBlock& block) { return std::pair(block.begin, block.end); });
    int64_t covered = 0;
    for (const PaddedBlock& block : blocks_) {
      if (block.axis != blocks_[0].axis || block.begin != covered) return false;
      covered = block.end;
    }
    return covered == result.dims()[blocks_[0].axis];
  }

  const Graph& graph_;
  const std::map<Output, int>& uses_;
  const std::string& device_;
  std::set<int> adds_;
  std::vector<PaddedBlock> blocks_;
  bool joins_ = false;
};

}  // namespace

Graph JoinPads(const Graph& graph) {
  const std::map<Output, int> uses = CountUses(graph);
  std::map<int, PaddedSum> sums;  // keyed by root
  std::set<int> absorbed;
  for (int id = static_cast<int>(graph.nodes().size()) - 1; id >= 0; --id) {
    if (absorbed.contains(id) || graph.node(id).op != "Add") continue;
    PaddedSum sum(graph, uses, id);
    if (!sum.joins()) continue;
    absorbed.insert(sum.adds().begin(), sum.adds().end());
    sums.emplace(id, std::move(sum));
  }
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (const auto found = sums.find(id); found != sums.end()) {
      const PaddedSum& sum = found->second;
      rewriter.Replace({id, 0}, rewriter.Append(id, "Concat", rewriter.Now(sum.values()),
                                                {{"axis", sum.axis()}}));
    } else if (!absorbed.contains(id)) {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
