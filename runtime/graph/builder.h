// Builds a graph node by node. The functions that add ops are in ops.h. Layers and losses are
// functions that take a Builder& and Outputs, and return Outputs:
//
//   Builder b;
//   Output x = Placeholder(b, "x", DType::kFloat32, {32, 784});
//   Output w = ReadVariable(b, "dense/kernel", DType::kFloat32, {784, 10});
//   Output loss =
//       Mean(b, SparseSoftmaxCrossEntropyWithLogits(b, MatMul(b, x, w), labels).loss, {});
//   b.AddFetch("loss", loss);
//   ASSIGN_OR_RETURN(Graph graph, std::move(b).Finish());
//
// The builder records the first error, and Finish returns that error. If a call fails, later calls
// that depend on its output do nothing and return invalid Outputs. The error message names the
// node, its op and its input shapes, and says what was expected. Only one thread may use a builder.
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

  // Appends a node and returns its first output. On failure, records the error and returns an
  // invalid Output. If `name` is empty, the op's name is used. The name is prefixed with the
  // current scope, unless the op is a placeholder or accesses a variable. If the name is already in
  // use, "_1", "_2", … is appended; for a placeholder, this is an error instead.
  Output Add(std::string_view op, std::vector<Output> inputs, Attributes attributes = {},
             std::string_view name = "");

  // Replaces a node's attributes with ones that give it additional outputs after the existing ones.
  // If the op rejects the attributes, records the error and returns false.
  bool Extend(int node, Attributes attributes);

  // Makes a value fetchable under `name`. It is an error if a fetch with this name already exists,
  // or if the output is invalid.
  void AddFetch(std::string_view name, Output output);

  // Returns the type of a value, or float32[] for an invalid Output.
  const TensorType& type(Output output) const;
  const Shape& shape(Output output) const { return type(output).shape; }
  DType dtype(Output output) const { return type(output).dtype; }

  // Records the error, unless there already is one. Returns an invalid Output.
  Output Fail(Status error);
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // Returns the next number for the attribute op_id, which distinguishes the random ops of a graph.
  int64_t NextOpId() { return op_ids_ == nullptr ? next_op_id_++ : op_ids_->NextOpId(); }
  // Makes NextOpId return numbers of another builder, which must outlive this one. The random ops
  // of both graphs then differ.
  void ShareOpIds(Builder& with) { op_ids_ = &with; }

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
  Builder* op_ids_ = nullptr;
  std::string scope_;                              // "" or "dense/"
  std::string device_;                             // merged constraints of all open DeviceScopes
  std::map<std::string, int, std::less<>> names_;  // name → how often it was requested
  std::vector<NodeRange> recomputed_;
  int recompute_scopes_ = 0;  // the number of open RecomputeScopes
};

// Prefixes the names of all nodes that are added during its lifetime with "name/". The prefixes of
// outer scopes come first.
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

// Sets the device constraint of all nodes that are added during its lifetime. The constraint is
// merged with that of the outer scope; if both specify the same part, the inner scope wins.
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

// Selects the nodes that are appended during its lifetime for recomputation: gradients compute
// these nodes a second time, instead of keeping their values. Only values that nodes outside the
// scope use are kept. This saves memory, at the cost of one more forward pass through these nodes.
// A scope inside another scope has no effect.
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
