#include <map>
#include <string>
#include <tuple>

#include "runtime/graph/op.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// Identifies nodes that can be merged: those with equal keys and equal attributes. Two reads of a
// variable have different `writes` if there is a write between them.
struct Key {
  std::string op;
  std::vector<Output> inputs;
  std::string device;
  int writes;

  auto operator<=>(const Key&) const = default;
};

// Counts the writes to each variable, in the order of the nodes.
class WriteCounter {
 public:
  int Before(const Node& node) {
    const std::string* variable = node.attributes.Find<std::string>("variable");
    if (variable == nullptr) return 0;
    int& count = writes_[*variable];
    return FindOp(node.op)->effect == Effect::kWrite ? count++ : count;
  }

 private:
  std::map<std::string, int> writes_;
};

bool MayMerge(const Node& node) {
  const Effect effect = FindOp(node.op)->effect;
  return effect == Effect::kNone || effect == Effect::kRead;
}

}  // namespace

Graph MergeCommonSubexpressions(const Graph& graph) {
  Rewriter rewriter(graph);
  WriteCounter writes;
  std::map<Key, std::vector<int>> seen;  // old positions of the nodes that were kept
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    std::vector<int>& candidates =
        seen[{node.op, rewriter.Now(node.inputs), node.device, writes.Before(node)}];
    int same = -1;
    for (int candidate : candidates) {
      if (MayMerge(node) && graph.node(candidate).attributes == node.attributes) same = candidate;
    }
    if (same < 0) {
      candidates.push_back(id);
      rewriter.Copy(id);
      continue;
    }
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
      rewriter.Replace({id, i}, rewriter.Now(Output{same, i}));
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
