// Builds a graph node by node. The functions that make ops are in ops.h; a layer or a loss takes a
// Builder& and Outputs and returns Outputs:
//
//   Builder b;
//   Output x = Placeholder(b, "x", DType::kFloat32, {32, 784});
//   Output w = ReadVariable(b, "dense/kernel", DType::kFloat32, {784, 10});
//   Output loss = Mean(b, SparseSoftmaxCrossEntropyWithLogits(b, MatMul(b, x, w), labels).loss,
//   {}); b.AddFetch("loss", loss); ASSIGN_OR_RETURN(Graph graph, std::move(b).Finish());
//
// Errors stick: the first one is kept, later calls that depend on its output give invalid Outputs
// and do nothing, Finish returns it. It names the node, the op, the shapes that came and what was
// expected. Owned by one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

class Builder {
 public:
  Builder() = default;
  // Goes on with a graph.
  explicit Builder(Graph graph);

  // Appends a node, or gives an invalid Output (and keeps the error). `name` empty: the op's. Made
  // unique within the current scope by "_1", "_2", …; the names of placeholders and of ops on
  // variables are not scoped, and a placeholder's must be unused.
  Output Add(std::string_view op, std::vector<Output> inputs, Attributes attributes = {},
             std::string_view name = "");

  // A name for a value that programs give back; the second of a name is an error. An invalid output
  // is ignored (its error is kept already).
  void AddFetch(std::string_view name, Output output);

  // The type of a value; of an invalid Output float32[].
  const TensorType& type(Output output) const;
  const Shape& shape(Output output) const { return type(output).shape; }
  DType dtype(Output output) const { return type(output).dtype; }

  // Keeps the error when it is the first; returns an invalid Output.
  Output Fail(Status error);
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // A number for the attribute op_id, which tells the random ops of a graph apart.
  int64_t NextOpId() { return next_op_id_++; }

  const Graph& graph() const { return graph_; }
  StatusOr<Graph> Finish() &&;

 private:
  friend class NameScope;
  friend class DeviceScope;
  std::string UniqueName(std::string base);

  Graph graph_;
  Status status_;
  int64_t next_op_id_ = 0;
  std::string scope_;                              // "" or "dense/"
  std::string device_;                             // merged constraint of the open DeviceScopes
  std::map<std::string, int, std::less<>> names_;  // name → how often it was asked for
};

// While it lives, names of new nodes begin with "name/".
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

// While it lives, new nodes carry this device constraint, merged over the outer one (inner parts
// win).
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

}  // namespace tfjob::graph
