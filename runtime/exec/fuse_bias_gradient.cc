#include "runtime/exec/fuse_bias_gradient.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/graph/passes/rewriter.h"

namespace tfjob::exec {
namespace {

using graph::Graph;
using graph::Node;
using graph::Output;

// The positions in the graph of a product, and of the sum over the rows of one of its factors.
struct GradientPair {
  int product = -1, sum = -1;
  int64_t summed = 0;  // the input of the product

  int first() const { return std::min(product, sum); }
};

// Returns whether the product sums over the rows of its input `i`.
bool SumsOverRows(const Node& product, int64_t i) {
  return i == 0 ? product.attributes.Get("transpose_a", false)
                : !product.attributes.Get("transpose_b", false);
}

class GradientPairs {
 public:
  explicit GradientPairs(const Graph& graph) : graph_(graph) {
    const int count = static_cast<int>(graph.nodes().size());
    std::map<Output, int> sums;  // by summed value
    for (int id = 0; id < count; ++id)
      if (graph.node(id).op == "BiasAddGrad") sums[graph.node(id).inputs[0]] = id;
    for (int id = 0; id < count; ++id) Find(id, sums);
  }

  // Returns the pair whose first node is `id`, or null if `id` is not the first node of a pair.
  const GradientPair* BeginningAt(int id) const {
    const auto found = pairs_.find(id);
    return found == pairs_.end() ? nullptr : &found->second;
  }
  // Returns whether the node is the second one of a pair.
  bool Absorbs(int id) const { return absorbed_.contains(id); }

 private:
  void Find(int id, std::map<Output, int>& sums) {
    const Node& node = graph_.node(id);
    if (node.op != "MatMul") return;
    for (const int64_t summed : {1, 0}) {
      const auto sum = sums.find(node.inputs[static_cast<size_t>(summed)]);
      if (sum == sums.end() || !SumsOverRows(node, summed)) continue;
      const GradientPair pair{id, sum->second, summed};
      const bool late = std::ranges::any_of(
          node.inputs, [&](Output input) { return input.node >= pair.first(); });
      if (late || graph_.node(pair.sum).device != node.device) continue;
      pairs_[pair.first()] = pair;
      absorbed_.insert(std::max(pair.product, pair.sum));
      sums.erase(sum);
      return;
    }
  }

  const Graph& graph_;
  std::map<int, GradientPair> pairs_;  // by first node
  std::set<int> absorbed_;
};

void AppendPair(const Graph& graph, const GradientPair& pair, graph::Rewriter& rewriter) {
  const Node& product = graph.node(pair.product);
  Attributes attributes = product.attributes;
  attributes.Set("summed", pair.summed);
  const Output gradient = rewriter.Append(pair.product, "MatMulBiasGrad",
                                          rewriter.Now(product.inputs), std::move(attributes));
  rewriter.Replace({pair.product, 0}, gradient);
  rewriter.Replace({pair.sum, 0}, {gradient.node, 1});
}

}  // namespace

Graph FuseBiasGradient(const Graph& graph) {
  const GradientPairs pairs(graph);
  graph::Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (const GradientPair* pair = pairs.BeginningAt(id)) {
      AppendPair(graph, *pair, rewriter);
    } else if (!pairs.Absorbs(id)) {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::exec
