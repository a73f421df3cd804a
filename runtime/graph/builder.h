// Builds a graph node by node. The functions that add ops are in ops.h. A layer or a loss takes a
// Builder& and Outputs and returns Outputs:
//
//   Builder b;
//   Output x = Placeholder(b, "x", DType::kFloat32, {32, 784});
//   Output w = ReadVariable(b, "dense/kernel", DType::kFloat32, {784, 10});
//   Output loss =
//       Mean(b, SparseSoftmaxCrossEntropyWithLogits(b, MatMul(b, x, w), labels).loss, {});
//   b.AddFetch("loss", loss);
//   ASSIGN_OR_RETURN(Graph graph, std::move(b).Finish());
//
// The builder keeps the first error, and Finish returns it. Later calls that depend on the output
// of a failed call do nothing and return invalid Outputs. The error message names the node, the op
// and the shapes that it received, and says what was expected. Only one thread may use a builder.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// The nodes at the positions [begin, end).
struct NodeRange {
  int begin = 0;
  int end = 0;
};

class Builder {
 public:
  Builder() = default;
  // Continues building the given graph.
  explicit Builder(Graph graph);

  // Appends a node and returns its first output. If that fails, keeps the error and returns an
  // invalid Output. If `name` is empty, the op's name is used. The name is prefixed with the
  // current scope, unless the op is a placeholder or accesses a variable. If the name is taken,
  // "_1", "_2", … is appended. For a placeholder, a taken name is an error instead.
  Output Add(std::string_view op, std::vector<Output> inputs, Attributes attributes = {},
             std::string_view name = "");

  // Replaces a node's attributes with attributes that add further outputs after the existing ones.
  // Returns false, and keeps the error, if the op rejects the attributes.
  bool Extend(int node, Attributes attributes);

  // Marks a value as fetchable under `name`. It is an error if a fetch with this name already
  // exists or if the output is invalid.
  void AddFetch(std::string_view name, Output output);

  // Returns the type of a value, or float32[] for an invalid Output.
  const TensorType& type(Output output) const;
  const Shape& shape(Output output) const { return type(output).shape; }
  DType dtype(Output output) const { return type(output).dtype; }

  // Keeps the error if it is the first one. Returns an invalid Output.
  Output Fail(Status error);
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // Returns the next number for the attribute op_id, which distinguishes the random ops of a graph.
  int64_t NextOpId() { return next_op_id_++; }

  const Graph& graph() const { return graph_; }
  // Returns the nodes that were appended in each outermost RecomputeScope, in order.
  const std::vector<NodeRange>& recomputed() const { return recomputed_; }
  StatusOr<Graph> Finish() &&;

 private:
  friend class NameScope;
  friend class DeviceScope;
  friend class RecomputeScope;
  std::string UniqueName(std::string base);

  Graph graph_;
  Status status_;
  int64_t next_op_id_ = 0;
  std::string scope_;                              // "" or "dense/"
  std::string device_;                             // merged constraint of the open DeviceScopes
  std::map<std::string, int, std::less<>> names_;  // name → number of requests for it
  std::vector<NodeRange> recomputed_;
  int recompute_scopes_ = 0;  // how many are open
};

// While an object of this class exists, the names of new nodes get the prefix "name/", after the
// prefixes of the outer scopes.
class NameScope {
 public:
  NameScope(Builder& builder, std::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  Builder& builder_;
  std::string outer_;
};

// While an object of this class exists, new nodes carry its device constraint, merged with the
// constraint of the outer scope. If both specify the same part, the inner scope wins.
class DeviceScope {
 public:
  DeviceScope(Builder& builder, std::string_view device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Builder& builder_;
  std::string outer_;
};

// Gradients compute the nodes that are appended while an object of this class exists a second time,
// instead of keeping their values. They keep only the values that other nodes use. This saves memory
// and takes the time of one more forward pass through these nodes. A scope inside another one has no
// effect of its own.
class RecomputeScope {
 public:
  explicit RecomputeScope(Builder& builder);
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

 private:
  Builder& builder_;
  int begin_;
};

}  // namespace tfjob::graph
