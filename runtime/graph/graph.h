// Defines the dataflow graph: nodes with known types and shapes. A graph is built for one mode
// (train, eval, predict) and one batch size. All graphs of a model share its variables, which they
// refer to by name.
//
// The list of nodes is a schedule. The inputs of a node always come from earlier nodes, and running
// the nodes one after another gives the graph's results. A ReadVariable therefore sees exactly the
// writes (Assign, AssignAdd, MatMulAccumulate, ApplyOptimizer…) that precede it in the list. Code
// that reorders nodes must keep the order of a variable's reads and writes (StateDependencies).
//
// A graph is a plain value without synchronisation. Builder (builder.h) builds graphs, the passes
// (passes.h) rewrite them, and ToString prints them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/attributes.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::graph {

struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;

  // Returns "float32[128,784]".
  std::string ToString() const;
  bool operator==(const TensorType&) const = default;
};

// Refers to output `index` of the node at position `node` of the graph. A default-constructed
// Output is invalid.
struct Output {
  int node = -1;
  int index = 0;

  bool valid() const { return node >= 0; }
  auto operator<=>(const Output&) const = default;
};

struct Node {
  std::string op;    // TensorFlow's name; op.h describes the properties of each op
  std::string name;  // unique in the graph: "dense/MatMul"
  std::vector<Output> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;
  std::string device;  // a constraint, perhaps partial or empty: "/job:ps/task:1" (device.h)

  bool operator==(const Node&) const = default;
};

// A value that a program compiled from this graph can return. Gradients can also be announced as
// soon as they are computed (CompileOptions::announced in exec/program.h).
struct Fetch {
  std::string name;  // unique among the fetches
  Output output;

  bool operator==(const Fetch&) const = default;
};

class Graph {
 public:
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int id) const { return nodes_[static_cast<size_t>(id)]; }
  const Node& node(Output output) const { return node(output.node); }
  const TensorType& type(Output output) const {
    return node(output.node).outputs[static_cast<size_t>(output.index)];
  }
  const std::vector<Fetch>& fetches() const { return fetches_; }
  const Fetch* FindFetch(std::string_view name) const;

  // Appends a node, which must refer only to earlier nodes and carry its inferred output types.
  // Returns its position. Only Builder and the passes should call Append and AddFetch.
  int Append(Node node);
  void AddFetch(Fetch fetch) { fetches_.push_back(std::move(fetch)); }
  // Replaces a node's attributes with attributes that add further outputs after the existing ones.
  void Extend(int id, Attributes attributes, std::vector<TensorType> outputs);

  bool operator==(const Graph&) const = default;

  // Prints one node per line. The output is stable:
  //   dense/MatMul = MatMul(x, dense/kernel, transpose_b=true) : float32[32,128] @/job:worker
  //   fetch loss = Mean
  std::string ToString() const;
  // Returns "dense/MatMul", or "SparseSoftmaxCrossEntropyWithLogits:1" for an output other
  // than the first.
  std::string NameOf(Output output) const;

 private:
  std::vector<Node> nodes_;
  std::vector<Fetch> fetches_;
};

// Returns, for each node, the earlier nodes that must run before it because both access the same
// variable. A read depends on the last write before it. A write depends on the last write before it
// and on all reads since then. Dependencies through inputs are not included.
std::vector<std::vector<int>> StateDependencies(const Graph& graph);

}  // namespace tfjob::graph
