#include <optional>
#include <set>
#include <string>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

bool IsActivation(const std::string& op) {
  return op == "Relu" || op == "Sigmoid" || op == "Tanh";
}

// Returns the fused version of `op` with bias and activation, or null if there is none. An empty
// `activation` means no activation.
const char* FusedOp(const std::string& op, const std::string& activation) {
  if (op == "MatMul") return "FusedMatMul";
  if (op == "Conv2D" && (activation.empty() || activation == "Relu")) return "FusedConv2D";
  return nullptr;
}

// Identifies, by position, the nodes of a chain product [→ BiasAdd] [→ activation]. An absent node
// has position -1. Fusing pays off if the chain has at least two nodes.
struct Chain {
  int product = -1;
  int bias_add = -1;
  int activation = -1;
  const char* op = nullptr;  // the fused op

  bool worth_it() const { return op != nullptr && (bias_add >= 0 || activation >= 0); }
};

Chain ChainEndingAt(const Graph& graph, const std::map<Output, int>& uses, int id) {
  Chain chain;
  std::string activation;
  auto inside = [&](Output value) { return uses.at(value) == 1; };
  if (IsActivation(graph.node(id).op)) {
    chain.activation = id;
    activation = graph.node(id).op;
    const Output input = graph.node(id).inputs[0];
    if (!inside(input)) return {};
    id = input.node;
  }
  if (graph.node(id).op == "BiasAdd") {
    chain.bias_add = id;
    const Output input = graph.node(id).inputs[0];
    if (!inside(input)) return {};
    id = input.node;
  }
  chain.product = id;
  chain.op = FusedOp(graph.node(id).op, activation);
  return chain;
}

void AppendFused(const Graph& graph, const Chain& chain, int id, Rewriter& rewriter) {
  Attributes attributes = graph.node(chain.product).attributes;
  std::vector<Output> inputs = rewriter.Now(graph.node(chain.product).inputs);
  if (chain.bias_add >= 0) {
    inputs.push_back(rewriter.Now(graph.node(chain.bias_add).inputs[1]));
    attributes.Set("bias", true);
  }
  if (chain.activation >= 0) attributes.Set("activation", graph.node(chain.activation).op);
  rewriter.Replace({id, 0},
                   rewriter.Append(id, chain.op, std::move(inputs), std::move(attributes)));
}

}  // namespace

Graph FuseBiasAndActivation(const Graph& graph) {
  const std::map<Output, int> uses = CountUses(graph);
  const int count = static_cast<int>(graph.nodes().size());
  // Search backwards from the end of the graph, to find the longest chain first.
  std::map<int, Chain> chains;
  std::set<int> absorbed;
  for (int id = count - 1; id >= 0; --id) {
    if (absorbed.contains(id)) continue;
    const Chain chain = ChainEndingAt(graph, uses, id);
    if (!chain.worth_it()) continue;
    chains[id] = chain;
    absorbed.insert({chain.product, chain.bias_add, chain.activation});
  }
  Rewriter rewriter(graph);
  for (int id = 0; id < count; ++id) {
    if (const auto chain = chains.find(id); chain != chains.end()) {
      AppendFused(graph, chain->second, id, rewriter);
    } else if (!absorbed.contains(id)) {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
