// What is known of each op: how many inputs, its attributes, how its outputs' types follow from its
// inputs', its gradient, its effects. One explicit table (op_table.cc); nothing registers itself.
//
// The ops are those of runtime/kernels/ops.md, where operands, attributes and meanings are. What is
// different of a node from the kernel that serves it:
//   Placeholder()                     dtype, shape: fed at each run
//   ReadVariable()                    variable: string, dtype, shape
//   Assign(value), AssignAdd(value)   variable; no outputs
//   ApplyOptimizer(gradient, step)    variable, and those of optimizer::ToAttributes; no outputs
//   MatMulAccumulate(a, b)            variable; no outputs
//   Fill, Random*                     dtype, shape as attributes too, since a node has no other
//   source for them Cast, Reshape, BroadcastTo        dtype; shape; shape Sum, Mean, Max, Min axes:
//   always there, ascending, from 0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/graph.h"

namespace tfjob::graph {

// What inference sees of a node. It may bring attributes into their normal form (negative axes, -1
// in shapes).
struct InferenceContext {
  const std::vector<TensorType>& inputs;
  Attributes& attributes;
};
using InferenceFunction = StatusOr<std::vector<TensorType>> (*)(InferenceContext& context);

// What a gradient function sees: the node, the gradients of its outputs (an invalid Output where
// none flows) and the builder to which it appends. It returns one Output an input, invalid where no
// gradient flows.
struct GradientContext {
  Builder& b;
  const Node& node;               // a copy: appending does not move it
  int id;                         // its position
  std::vector<Output> gradients;  // d loss / d output

  Output input(int index) const { return node.inputs[static_cast<size_t>(index)]; }
  Output output(int index) const { return Output{id, index}; }
  Output dy() const { return gradients[0]; }
};
using GradientFunction = std::vector<Output> (*)(GradientContext& context);

enum class Effect {
  kNone,   // a function of its inputs
  kFeed,   // its value comes from outside
  kRead,   // reads the variable it names
  kWrite,  // writes it
};

struct Op {
  std::string_view name;
  int min_inputs;
  int max_inputs;
  InferenceFunction infer;
  // Null: no gradient is known, and asking for one is an error.
  GradientFunction gradient;
  Effect effect = Effect::kNone;
  // Output i depends on element i of its (broadcast) inputs only.
  bool elementwise = false;
};

// Null when there is no such op.
const Op* FindOp(std::string_view name);
// Every op, in the order of the table.
const std::vector<Op>& AllOps();

// Checks the number of inputs, infers. The error names op, input types and what was expected, not
// the node.
StatusOr<std::vector<TensorType>> InferTypes(std::string_view op,
                                             const std::vector<TensorType>& inputs,
                                             Attributes& attributes);

// NumPy's rule: aligned at the last axis, equal or 1. InvalidArgument when they do not fit.
StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace tfjob::graph
