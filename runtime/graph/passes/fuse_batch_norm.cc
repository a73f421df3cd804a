#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// Identifies, by position, the nodes of a chain FusedBatchNorm [→ Add of a side input] → Relu.
// `add` is -1 if there is no Add.
struct NormChain {
  int norm = -1, add = -1, relu = -1;
  Output side;
};

// Identifies, by position, a ReluGrad and the FusedBatchNormGrad that uses its output. With a side
// input, dy may be the sum of two values; `add` is the position of this sum.
struct NormGradChain {
  int relu_grad = -1, norm_grad = -1, add = -1;
  Output side_y;  // the activation's output; invalid if there is no side input
};

class NormFinder {
 public:
  explicit NormFinder(const Graph& graph) : graph_(graph), uses_(CountUses(graph)) {
    const int count = static_cast<int>(graph.nodes().size());
    for (int id = 0; id < count; ++id) FindForward(id);
    for (int id = 0; id < count; ++id) FindBackward(id);
  }

  const std::map<int, NormChain>& forward() const { return forward_; }        // by norm
  const std::map<int, NormGradChain>& backward() const { return backward_; }  // by position
  bool Absorbs(int id) const { return absorbed_.contains(id); }

 private:
  bool UsedOnce(Output value) const { return uses_.at(value) == 1; }

  bool IsNorm(Output value) const {
    return graph_.node(value).op == "FusedBatchNorm" && value.index == 0 && UsedOnce(value);
  }

  // Returns whether the node adds two values of the same type.
  bool AddsAlike(const Node& node) const {
    return node.op == "Add" && graph_.type(node.inputs[0]) == graph_.type(node.inputs[1]);
  }

  void FindForward(int relu) {
    const Node& node = graph_.node(relu);
    if (node.op != "Relu" || !UsedOnce(node.inputs[0])) return;
    NormChain chain{.relu = relu};
    const Output input = node.inputs[0];
    if (IsNorm(input)) {
      chain.norm = input.node;
    } else if (AddsAlike(graph_.node(input))) {
      // The fused op takes the position of the normalisation, so the side input must be computed
      // earlier.
      const auto [early, late] =
          std::minmax(graph_.node(input).inputs[0], graph_.node(input).inputs[1]);
      if (!IsNorm(late) || early.node >= late.node) return;
      chain = {late.node, input.node, relu, early};
    } else {
      return;
    }
    for (const int id : {chain.norm, chain.add}) {
      if (id >= 0 && graph_.node(id).device != node.device) return;
    }
    absorbed_.insert({chain.add, relu});
    forward_[chain.norm] = chain;
  }

  void FindBackward(int norm_grad) {
    const Node& node = graph_.node(norm_grad);
    if (node.op != "FusedBatchNormGrad") return;
    const auto forward = forward_.find(node.inputs[4].node);
    const Output dy = node.inputs[0];
    const Node& mask = graph_.node(dy);
    if (forward == forward_.end() || mask.op != "ReluGrad" || mask.device != node.device) return;
    if (mask.inputs[1] != Output{forward->second.relu, 0} || absorbed_.contains(dy.node)) return;
    NormGradChain chain{.relu_grad = dy.node, .norm_grad = norm_grad};
    int position = norm_grad;
    if (forward->second.side.valid()) {
      position = dy.node;  // other nodes may also use dy
      chain.side_y = mask.inputs[1];
      const Output sum = mask.inputs[0];
      if (AddsAlike(graph_.node(sum)) && UsedOnce(sum)) chain.add = sum.node;
      const bool late = std::any_of(node.inputs.begin() + 1, node.inputs.end(),
                                    [&](Output input) { return input.node > position; });
      if (late) return;
    } else if (!UsedOnce(dy)) {
      return;
    }
    absorbed_.insert({chain.relu_grad, chain.norm_grad, chain.add});
    backward_[position] = chain;
  }

  const Graph& graph_;
  std::map<Output, int> uses_;
  std::map<int, NormChain> forward_;
  std::map<int, NormGradChain> backward_;
  std::set<int> absorbed_;
};

Attributes WithRelu(const Node& node) {
  Attributes attributes = node.attributes;
  attributes.Set("activation", std::string("Relu"));
  return attributes;
}

void AppendNorm(const Graph& graph, const NormChain& chain, Rewriter& rewriter) {
  const Node& node = graph.node(chain.norm);
  std::vector<Output> inputs = rewriter.Now(node.inputs);
  if (chain.side.valid()) inputs.push_back(rewriter.Now(chain.side));
  const Output y = rewriter.Append(chain.norm, "FusedBatchNormEx", inputs, WithRelu(node));
  rewriter.Replace({chain.relu, 0}, y);
  for (int i = 1; i < 3; ++i) rewriter.Replace({chain.norm, i}, {y.node, i});
}

void AppendNormGrad(const Graph& graph, const NormGradChain& chain, Rewriter& rewriter) {
  const Node &node = graph.node(chain.norm_grad), &mask = graph.node(chain.relu_grad);
  std::vector<Output> inputs = node.inputs;
  inputs[0] = mask.inputs[0];
  if (chain.side_y.valid()) inputs.push_back(chain.side_y);
  if (chain.add >= 0) {
    inputs[0] = graph.node(chain.add).inputs[0];
    inputs.push_back(graph.node(chain.add).inputs[1]);
  }
  const Output dx = rewriter.Append(chain.norm_grad, "FusedBatchNormGradEx", rewriter.Now(inputs),
                                    WithRelu(node));
  for (int i = 0; i < 3; ++i) rewriter.Replace({chain.norm_grad, i}, {dx.node, i});
  if (chain.side_y.valid()) rewriter.Replace({chain.relu_grad, 0}, {dx.node, 3});
}

}  // namespace

Graph FuseBatchNorm(const Graph& graph) {
  const NormFinder found(graph);
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (const auto chain = found.forward().find(id); chain != found.forward().end()) {
      AppendNorm(graph, chain->second, rewriter);
    } else if (const auto grad = found.backward().find(id); grad != found.backward().end()) {
      AppendNormGrad(graph, grad->second, rewriter);
    } else if (!found.Absorbs(id)) {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
