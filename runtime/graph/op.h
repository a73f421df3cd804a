// What is known of each op: how many inputs, its attributes, how its outputs' types follow from its
// inputs', its gradient, its effects. One explicit table (op_table.cc); nothing registers itself.
//
// The ops and their attributes (the contract with runtime/kernels). f: float32 or float64. "last
// axis" is the innermost.
//   Placeholder()                     dtype, shape
//   Const()                           value: Tensor
//   Fill()                            dtype, shape, value: double
//   ReadVariable()                    variable: string, dtype, shape
//   Assign(value), AssignAdd(value)   variable; no outputs
//   ApplyOptimizer(gradient, step)    variable, kind and hyper-parameters (runtime/optimizer); no
//   outputs Identity(x) MatMul(a, b)                      transpose_a, transpose_b: bool BiasAdd(x,
//   bias), BiasAddGrad(dy) Relu(x), Sigmoid(x), Tanh(x), Softmax(x) ReluGrad(dy, y), SigmoidGrad(y,
//   dy), TanhGrad(y, dy) SparseSoftmaxCrossEntropyWithLogits(logits, labels),
//   SoftmaxCrossEntropyWithLogits(logits, labels) → loss, backprop Add, Sub, Mul, Div, Maximum,
//   Minimum, Pow (x, y)      broadcast; Equal, Greater, GreaterEqual, Less → bool Select(condition,
//   x, y)           broadcast Neg, Exp, Log, Square, Sqrt, Rsqrt, Abs (x) ClipByValue(x)
//   clip_value_min, clip_value_max: double Cast(x)                           dtype Sum, Mean, Max,
//   Min (x)           axes: ascending, from 0, never empty unless rank 0; keep_dims: bool ArgMax(x)
//   axis: int64 from 0 → int64 Reshape(x)                        shape Transpose(x) perm: list;
//   output axis i is input axis perm[i] BroadcastTo(x)                    shape Dropout(x, step,
//   seed), DropoutGrad(dy, step, seed)   rate: double, stream: int64, replica: int64
//   RandomUniform(step, seed)         dtype, shape, minval, maxval: double, stream, replica
//   RandomNormal, TruncatedNormal (step, seed)            dtype, shape, mean, stddev: double,
//   stream, replica
// Made by passes only:
//   FusedMatMul(a, b[, bias])         transpose_a, transpose_b, activation: string, "" or "Relu",
//   "Sigmoid", "Tanh" FusedElementwise(x0, x1, …)       expression: string in postfix order, tokens
//   split by one space: "%i" is input i (of
//                                     the output's shape, or one element), "=0.5" a number, else
//                                     the name of an elementwise op above ("%0 %1 Add Relu");
//                                     dtype: of the output and of all inputs
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
