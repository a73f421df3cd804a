// Appends second copies of forward nodes for the gradients of a RecomputeScope (builder.h), which do
// not use the values of the forward pass. Private to this package.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "runtime/graph/builder.h"

namespace tfjob::graph {

// Marks the copies. MergeCommonSubexpressions does not merge nodes that differ in an attribute, so
// a copy is not merged with the node that it repeats.
inline constexpr char kRecomputed[] = "recomputed";

// Used while the gradients of the nodes up to a certain position are appended, last node first.
class Recomputation {
 public:
  // `last` is the position of the last node of the forward pass.
  Recomputation(Builder& b, int last);

  // A node as its gradient function should see it.
  struct Source {
    Node node;  // its inputs may be values of copies
    int id;     // the position of the node or of its copy
  };
  // Returns the node at position `id` of the forward pass. If the node is recomputed, appends the
  // copies of the nodes of its scope first, unless an earlier call has done so.
  Source SourceOf(int id);

 private:
  // Returns whether the value is kept anyway, because a node outside the scope uses it.
  bool IsKept(const NodeRange& scope, int id) const;
  void Append(const NodeRange& scope);
  Output Now(Output value) const;
  std::vector<Output> Now(const std::vector<Output>& values) const;

  Builder& b_;
  std::vector<int> last_use_;    // by node: the position of the last node that uses a value of it
  std::map<int, int> stand_in_;  // by node of the appended scopes: the node or its copy
};

}  // namespace tfjob::graph
