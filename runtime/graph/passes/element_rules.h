// Decides which nodes FuseElementwise may compute with one kernel, and when it pays to compute a
// node several times.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/passes.h"

namespace tfjob::graph {

// Describes the nodes of a graph, which must outlive this object. A node is identified by its
// position. Immutable.
class ElementRules {
 public:
  // The limits of the kernels: kernels/cpu/fused.cc and kernels/cuda/parameters.h.
  static constexpr size_t kMostInputs = 8;

  ElementRules(const Graph& graph, Fusion fusion);

  const Graph& graph() const { return graph_; }
  int most_steps() const { return fusion_ == Fusion::kRecompute ? 24 : 16; }

  // Returns whether a program may contain the node.
  bool IsFusible(int id) const { return fusible_[static_cast<size_t>(id)]; }
  // Returns whether a program may end with the node.
  bool IsRoot(int id) const { return IsFusible(id); }
  // Returns whether a program that ends with `root` may contain the node.
  bool MayJoin(int id, int root) const;
  // Returns whether the node only converts or repeats its input, which programs do when they read.
  bool IsView(int id) const;
  // Returns whether the node is a Dropout or its gradient.
  bool IsDropout(int id) const;
  // Returns the inputs that a step of a program reads: all except the random words.
  std::vector<Output> OperandsOf(int id) const;

  // Returns the positions of the nodes that use the node's outputs. If an output is fetched, -1 is
  // among them.
  const std::set<int>& UsersOf(int id) const { return users_[static_cast<size_t>(id)]; }

  // Returns whether a program should contain the value as a number, because it is a constant with
  // one element; ValueOf then returns the number.
  bool IsInline(Output value) const;
  double ValueOf(Output value) const;

  // Returns whether a program that contains `nodes` and reads `inputs` should compute a fusible
  // node again, although others use it, too: if its inputs then have no more bytes than its output,
  // or fewer bytes if the output is stored in any case.
  bool PaysToCompute(int id, const std::set<int>& nodes, const std::set<Output>& inputs) const;

 private:
  bool FindFusible(const Node& node) const;
  bool IsNarrowing(int id) const;
  // Returns whether the kernels can read the input of a program with this shape.
  bool IsReadable(const Shape& input, const Shape& output) const;
  // Returns whether a kernel that is not a program of the same shape reads the node's output.
  bool IsStored(int id) const;
  const Shape& ShapeOf(int id) const { return graph_.node(id).outputs[0].shape; }

  const Graph& graph_;
  const Fusion fusion_;
  std::vector<std::set<int>> users_;
  std::vector<bool> fusible_;
};

}  // namespace tfjob::graph
