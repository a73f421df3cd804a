// Appends copies of the forward nodes in a RecomputeScope (builder.h). The gradients of these nodes
// use the values of the copies, so the values of the forward pass need not be kept. Private to this
// package.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "runtime/graph/builder.h"

namespace tfjob::graph {

// The attribute of the copies. MergeCommonSubexpressions merges only nodes with equal attributes,
// so it does not merge a copy with the original.
inline constexpr char kRecomputed[] = "recomputed";

// Supplies Backpropagate with the nodes that gradients use. Backpropagate visits the nodes in
// reverse order.
class Recomputation {
 public:
  // `last` is the position of the last node of the forward pass.
  Recomputation(Builder& b, int last);

  // Describes a node as its gradient function should see it.
  struct Source {
    Node node;  // its inputs may be values of copies
    int id;     // the position of the node or of its copy
  };
  // Returns the node at position `id` of the forward pass, or its copy. The first call for a scope
  // appends the copies.
  Source SourceOf(int id);

 private:
  // Returns, for each node of the scope, whether its values are kept anyway, because a node outside
  // the scope uses one of them or a view of it.
  std::vector<bool> FindKept(const NodeRange& scope) const;
  void Append(const NodeRange& scope);
  Output Now(Output value) const;
  std::vector<Output> Now(const std::vector<Output>& values) const;

  Builder& b_;
  std::vector<int> last_use_;    // by node: the last node that uses one of its values
  std::map<int, int> stand_in_;  // by node of the copied scopes: the node or its copy
};

}  // namespace tfjob::graph
