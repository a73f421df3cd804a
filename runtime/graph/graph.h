// Defines the dataflow graph: nodes with known types and shapes. A graph is built for one mode
// (train, eval or predict) and one batch size. All graphs of a model share the model's variables,
// and refer to them by name.
//
// The list of nodes is a schedule: the inputs of a node always come from earlier nodes, and the
// results are defined by running the nodes in list order. A ReadVariable therefore sees exactly the
// writes (Assign, AssignAdd, MatMulAccumulate, ApplyOptimizer…) that precede it in the list. Code
// that reorders nodes must preserve the order of a variable's reads and writes (StateDependencies).
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

// Identifies output number `index` of the node at position `node` in the graph. A
// default-constructed Output is invalid.
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

// Names a value that a program compiled from this graph can return. A program can also announce
// gradients as soon as they are computed (CompileOptions::announced in exec/program.h).
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

  // Appends a node and returns its position. The node must refer only to earlier nodes, and its
  // output types must already be inferred. Only Builder and the passes should call Append and
  // AddFetch.
  int Append(Node node);
  void AddFetch(Fetch fetch) { fetches_.push_back(std::move(fetch)); }
  // Replaces a node's attributes with ones that give it additional outputs after the existing ones.
  void Extend(int id, Attributes attributes, std::vector<TensorType> outputs);

  bool operator==(const Graph&) const = default;

  // Prints one node per line, in a stable format:
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

// Returns, for each node, the earlier nodes that must run first because they access the same
// variable or exchange values (op.h), too. A read depends on the preceding write. A write depends
// on the preceding write and on all reads between the two. An exchange depends on the preceding
// exchange. Dependencies through inputs are not included.
std::vector<std::vector<int>> StateDependencies(const Graph& graph);

}  // namespace tfjob::graph
