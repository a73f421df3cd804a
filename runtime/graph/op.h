// Defines the properties of each op: its number of inputs, its attributes, its type inference, its
// gradient and its effect. An explicit table lists these properties (ops/table.cc). Ops do not
// register themselves; instead, each family of ops defines its table rows in its own file
// (ops/elementwise.cc, …).
//
// runtime/kernels/ops.md documents the operands, attributes and meaning of each op. A node differs
// from the kernel that implements it as follows:
//   Placeholder()                     dtype, shape; its value is fed at each run
//   ReadVariable()                    variable: string, dtype, shape
//   Assign(value), AssignAdd(value)   variable; no outputs
//   ApplyOptimizer(gradient, step)    variable, and optimizer::ToAttributes; no outputs
//   ApplyOptimizerRows(indices, values, step)   likewise
//   MatMulAccumulate(a, b)            variable; no outputs
//   Fill, Random*                     dtype, shape; a kernel takes both from its output instead
//   Cast                              dtype
//   Reshape, BroadcastTo              shape
//   Sum, Mean, Max, Min               axes: always present, ascending, from 0
//   Scan                              see scan.h
//   AllReduceMean                     exchange: see Effect::kExchange
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Passes the input types and attributes of a node to an inference function, which may normalise the
// attributes (negative axes, -1 in shapes).
struct InferenceContext {
  const std::vector<TensorType>& inputs;
  Attributes& attributes;
};
using InferenceFunction = StatusOr<std::vector<TensorType>> (*)(InferenceContext& context);

// Represents the gradient of a matrix by rows. `input` is the index of the matrix among the node's
// inputs. values[i] contributes to row indices[i] of the gradient. A row whose index occurs several
// times is the sum of its contributions; a row whose index does not occur is zero. `indices` is
// int32[n] or int64[n], and `values` has n rows.
struct IndexedSlices {
  int input = 0;
  Output indices;
  Output values;
};

// Contains the arguments of a gradient function. `gradients` contains one Output per output of the
// node, which is invalid if no gradient flows through that output. The function appends nodes to
// `b`, and returns one Output per input of the node, which is invalid if no gradient flows to that
// input.
struct GradientContext {
  Builder& b;
  const Node& node;               // a copy, because appending nodes invalidates references
  int id;                         // the position of the node
  std::vector<Output> gradients;  // d loss / d output
  std::vector<bool> wanted;       // one per input: whether its gradient is used

  // If a gradient is zero except in a few rows, the function appends these rows here and returns an
  // invalid Output for that input.
  std::vector<IndexedSlices> slices = {};

  Output input(int index) const { return node.inputs[static_cast<size_t>(index)]; }
  Output output(int index) const { return Output{id, index}; }
  Output dy() const { return gradients[0]; }
};
using GradientFunction = std::vector<Output> (*)(GradientContext& context);
// Returns an invalid Output for each input. Serves as the gradient function of comparisons, sources
// and other ops through which no gradient flows.
std::vector<Output> NoGradient(GradientContext& context);

enum class Effect {
  kNone,   // depends only on its inputs
  kFeed,   // its value is fed at each run
  kRead,   // reads the variable it names
  kWrite,  // writes the variable it names
  // Combines its input with the inputs of the same op on the other replicas of the step. All
  // replicas must run the same exchanges in the same order. Passes therefore never drop, merge,
  // fold, fuse, copy or reorder exchanges. The output has the type of the input.
  kExchange,
};

// The attribute of exchanges: the number of exchanges before this one in the graph.
inline constexpr char kExchange[] = "exchange";
// Returns the positions of the exchanges in the graph, in order.
std::vector<int> Exchanges(const Graph& graph);

struct Op {
  std::string_view name;
  int min_inputs;
  int max_inputs;
  InferenceFunction infer;
  // Null if the op has no gradient; requesting the gradient is then an error.
  GradientFunction gradient;
  Effect effect = Effect::kNone;
  // Whether FuseElementwise may fuse the op. Requires that element i of the output depends only on
  // element i of the (broadcast) inputs, and that inputs and output have the same dtype.
  bool elementwise = false;
  // The version of the op's meaning in files (graph_def/graph_def.h). Increase it when the formula,
  // the attributes or their defaults change, so that existing files are not misinterpreted.
  int version = 1;
};

// Returns the op with this name, or null if there is none.
const Op* FindOp(std::string_view name);
// Returns every op, in the order of the table.
const std::vector<Op>& AllOps();

// Checks the number of inputs and returns the types of the outputs. May normalise `attributes`.
// Returns Unimplemented if there is no such op, and InvalidArgument if the op rejects the inputs or
// attributes. The message then names the op, its input types and what was expected, but not the
// node.
StatusOr<std::vector<TensorType>> InferTypes(std::string_view op,
                                             const std::vector<TensorType>& inputs,
                                             Attributes& attributes);

// Broadcasts two shapes according to NumPy's rule: they are aligned at the last axis, and two
// aligned dimensions must be equal unless one of them is 1. Returns InvalidArgument if the shapes
// are incompatible.
StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace tfjob::graph
