// Defines the properties of each op: its number of inputs, its attributes, how the types of its
// outputs follow from the types of its inputs, its gradient and its effect. One explicit table
// lists these properties (ops/table.cc). Ops do not register themselves: each family of ops has its
// rows of the table in its own file (ops/elementwise.cc, …).
//
// runtime/kernels/ops.md documents the ops: their operands, attributes and meanings. A node differs
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
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/graph.h"

namespace tfjob::graph {

// The parts of a node that an inference function receives. Inference may normalise attributes
// (negative axes, -1 in shapes).
struct InferenceContext {
  const std::vector<TensorType>& inputs;
  Attributes& attributes;
};
using InferenceFunction = StatusOr<std::vector<TensorType>> (*)(InferenceContext& context);

// The gradient of input `input`, which is a matrix. Row indices[i] of the gradient is values[i]; if
// an index is listed several times, its row is the sum of these values. `indices` is int32[n] or
// int64[n], and `values` has n rows.
struct IndexedSlices {
  int input = 0;
  Output indices;
  Output values;
};

// The input of a gradient function. `gradients` holds one Output per output of the node; an invalid
// one means that no gradient flows through that output. The function appends nodes to `b`, and
// returns one Output per input of the node; an invalid one means that no gradient flows to that
// input.
struct GradientContext {
  Builder& b;
  const Node& node;               // a copy, so that appending does not invalidate it
  int id;                         // the position of the node
  std::vector<Output> gradients;  // d loss / d output
  std::vector<bool> wanted;       // per input: false if its gradient is not used

  // For a gradient that is zero except in a few rows, the function appends these rows here instead
  // of returning the gradient.
  std::vector<IndexedSlices> slices = {};

  Output input(int index) const { return node.inputs[static_cast<size_t>(index)]; }
  Output output(int index) const { return Output{id, index}; }
  Output dy() const { return gradients[0]; }
};
using GradientFunction = std::vector<Output> (*)(GradientContext& context);
// Returns an invalid Output for each input. Used for comparisons, sources and other ops through
// which no gradient flows.
std::vector<Output> NoGradient(GradientContext& context);

enum class Effect {
  kNone,   // a function of its inputs
  kFeed,   // its value is fed at each run
  kRead,   // reads the variable it names
  kWrite,  // writes the variable it names
};

struct Op {
  std::string_view name;
  int min_inputs;
  int max_inputs;
  InferenceFunction infer;
  // If null, the op has no gradient, and requesting one is an error.
  GradientFunction gradient;
  Effect effect = Effect::kNone;
  // True if FuseElementwise may fuse the op. Element i of the output must depend only on element i
  // of the (broadcast) inputs, and the inputs and the output must have the same dtype.
  bool elementwise = false;
  // Changes whenever nodes that were written before (graph_def/graph_def.h) would mean something
  // else: another formula, other attributes or other defaults.
  int version = 1;
};

// Returns null if there is no such op.
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

// Broadcasts two shapes by NumPy's rule: they are aligned at the last axis, and two dimensions must
// be equal unless one of them is 1. Returns InvalidArgument if the shapes cannot be broadcast
// together.
StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace tfjob::graph
