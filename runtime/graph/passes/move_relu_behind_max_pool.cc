#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// Identifies, by position, a Relu whose value is only pooled, and the nodes that compute the
// gradient of the Relu's input; these are -1 if there is no gradient.
struct PooledRelu {
  int relu = -1, pool = -1, pool_grad = -1, relu_grad = -1;
};

class PooledRelus {
 public:
  explicit PooledRelus(const Graph& graph)
      : graph_(graph), uses_(CountUses(graph)), users_(graph.nodes().size()) {
    const int count = static_cast<int>(graph.nodes().size());
    for (int id = 0; id < count; ++id) {
      for (const Output input : graph.node(id).inputs)
        users_[static_cast<size_t>(input.node)].insert(id);
    }
    for (int id = 0; id < count; ++id) Find(id);
  }

  // Returns the chain that contains the node, or null.
  const PooledRelu* ChainOf(int id) const {
    const auto found = chains_.find(id);
    return found == chains_.end() ? nullptr : &found->second;
  }

 private:
  // Returns whether the value comes from a convolution, with or without a bias. The activation of a
  // batch normalisation is better fused with it.
  bool IsConvolution(Output value) const {
    const Node& node = graph_.node(value);
    if (node.op == "BiasAdd") return graph_.node(node.inputs[0]).op == "Conv2D";
    return node.op == "Conv2D";
  }

  void Find(int relu) {
    const Node& node = graph_.node(relu);
    if (node.op != "Relu" || !IsConvolution(node.inputs[0])) return;
    const Output y{relu, 0};
    PooledRelu chain{.relu = relu};
    int known = 0;  // uses of the Relu's value
    for (const int id : users_[static_cast<size_t>(relu)]) {
      const Node& user = graph_.node(id);
      int* place = nullptr;
      if (user.op == "MaxPool") place = &chain.pool;
      if (user.op == "MaxPoolGrad" && user.inputs[0] == y) place = &chain.pool_grad;
      if (user.op == "ReluGrad" && user.inputs[1] == y) place = &chain.relu_grad;
      if (place == nullptr || *place >= 0 || user.device != node.device) return;
      *place = id;
      ++known;
    }
    if (chain.pool < 0 || known != uses_.at(y) || !HasMatchingGradient(chain)) return;
    for (const int id : {chain.relu, chain.pool, chain.pool_grad, chain.relu_grad})
      if (id >= 0) chains_[id] = chain;
  }

  // Returns whether the gradient, if there is one, belongs to the pooling, and goes only through
  // the Relu.
  bool HasMatchingGradient(const PooledRelu& chain) const {
    if (chain.pool_grad < 0) return chain.relu_grad < 0;
    if (chain.relu_grad < 0) return false;
    const Node& grad = graph_.node(chain.pool_grad);
    return grad.inputs[1] == Output{chain.pool, 0} &&
           grad.attributes == graph_.node(chain.pool).attributes &&
           graph_.node(chain.relu_grad).inputs[0] == Output{chain.pool_grad, 0} &&
           uses_.at({chain.pool_grad, 0}) == 1;
  }

  const Graph& graph_;
  const std::map<Output, int> uses_;
  std::vector<std::set<int>> users_;
  std::map<int, PooledRelu> chains_;  // by each of their nodes
};

class Mover {
 public:
  explicit Mover(const Graph& graph) : graph_(graph), found_(graph), rewriter_(graph) {}

  Graph Run() {
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      if (const PooledRelu* chain = found_.ChainOf(id)) {
        if (id == chain->pool) AppendPool(*chain);
        if (id == chain->relu_grad) AppendGradient(*chain);
      } else if (!AppendBiasGradient(id)) {
        rewriter_.Copy(id);
      }
    }
    return std::move(rewriter_).Finish();
  }

 private:
  Output InputOf(const PooledRelu& chain) const {
    return rewriter_.Now(graph_.node(chain.relu).inputs[0]);
  }

  void AppendPool(const PooledRelu& chain) {
    const Output most = rewriter_.Append(chain.pool, "MaxPool", {InputOf(chain)},
                                         graph_.node(chain.pool).attributes);
    rewriter_.Replace({chain.pool, 0}, rewriter_.Append(chain.relu, "Relu", {most}, {}));
  }

  // Where the Relu's output is positive, it equals the maximum, so MaxPoolGrad can use it in place
  // of the maximum. Elsewhere, the gradient is 0.
  void AppendGradient(const PooledRelu& chain) {
    const Node& grad = graph_.node(chain.pool_grad);
    const Output y = rewriter_.Now({chain.pool, 0});
    const Output dy =
        rewriter_.Append(chain.relu_grad, "ReluGrad", {rewriter_.Now(grad.inputs[2]), y}, {});
    rewriter_.Replace(
        {chain.relu_grad, 0},
        rewriter_.Append(chain.pool_grad, "MaxPoolGrad", {InputOf(chain), y, dy}, grad.attributes));
    pooled_[{chain.relu_grad, 0}] = dy;
  }

  // MaxPoolGrad only moves elements, so the sum of its input is that of its output.
  bool AppendBiasGradient(int id) {
    const Node& node = graph_.node(id);
    if (node.op != "BiasAddGrad") return false;
    const auto found = pooled_.find(node.inputs[0]);
    if (found == pooled_.end()) return false;
    rewriter_.Replace({id, 0},
                      rewriter_.Append(id, "BiasAddGrad", {found->second}, node.attributes));
    return true;
  }

  const Graph& graph_;
  const PooledRelus found_;
  Rewriter rewriter_;
  std::map<Output, Output> pooled_;  // by old gradient: the new one before MaxPoolGrad
};

}  // namespace

Graph MoveReluBehindMaxPool(const Graph& graph) {
  return Mover(graph).Run();
}

}  // namespace tfjob::graph
