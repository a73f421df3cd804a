#include <map>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

// Returns whether the node only exchanges the axes `first` and `second`, which are counted from the
// last axis.
bool Exchanges(const Node& node, size_t first, size_t second) {
  if (node.op != "Transpose") return false;
  const auto* permutation = node.attributes.Find<std::vector<int64_t>>("perm");
  if (permutation == nullptr || permutation->size() <= second) return false;
  const size_t rank = permutation->size();
  for (size_t axis = 0; axis < rank; ++axis) {
    const size_t from_last = rank - 1 - axis;
    const size_t wanted = from_last == first ? second : from_last == second ? first : from_last;
    if (static_cast<size_t>((*permutation)[axis]) != rank - 1 - wanted) return false;
  }
  return true;
}

void Toggle(Attributes& attributes, const std::string& name) {
  attributes.Set(name, !attributes.Get(name, false));
}

class TransposeFuser {
 public:
  explicit TransposeFuser(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  Graph Run() {
    const std::map<Output, int> uses = CountUses(graph_);
    // Maps each Transpose that a product can absorb to that product; both are given by their
    // positions. `users` is the inverse map.
    std::map<int, int> products;
    std::map<int, int> users;
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      if (!Exchanges(node, 1, 2)) continue;
      const Output product = node.inputs[0];
      if (graph_.node(product.node).op != "BatchMatMulV2" || uses.at(product) != 1) continue;
      products[id] = product.node;
      users[product.node] = id;
    }
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      if (users.contains(id)) continue;
      if (const auto product = products.find(id); product != products.end()) {
        Append(id, product->second, /*swap_z=*/true);
      } else if (graph_.node(id).op == "BatchMatMulV2") {
        Append(id, id, /*swap_z=*/false);
      } else {
        rewriter_.Copy(id);
      }
    }
    return std::move(rewriter_).Finish();
  }

 private:
  // Appends the product in place of the node `id`.
  void Append(int id, int product, bool swap_z) {
    const Node& node = graph_.node(product);
    Attributes attributes = node.attributes;
    if (swap_z) Toggle(attributes, "swap_z");
    const Output x = Absorb(node.inputs[0], "adj_x", "swap_x", attributes);
    const Output y = Absorb(node.inputs[1], "adj_y", "swap_y", attributes);
    rewriter_.Replace({id, 0},
                      rewriter_.Append(id, "BatchMatMulV2", rewriter_.Now(std::vector{x, y}),
                                       std::move(attributes)));
  }

  // Removes the operand's Transposes that the attributes can express, and sets the attributes
  // accordingly. Returns the operand without these Transposes.
  Output Absorb(Output operand, const std::string& adj, const std::string& swap,
                Attributes& attributes) const {
    while (true) {
      const Node& node = graph_.node(operand.node);
      if (Exchanges(node, 1, 2)) {
        Toggle(attributes, swap);
      } else if (Exchanges(node, 0, 1) && !attributes.Get(swap, false)) {
        Toggle(attributes, adj);
      } else {
        return operand;
      }
      operand = node.inputs[0];
    }
  }

  const Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

Graph FuseTranspose(const Graph& graph) {
  return TransposeFuser(graph).Run();
}

}  // namespace tfjob::graph
