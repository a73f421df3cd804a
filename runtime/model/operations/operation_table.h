// Lists the functions that operation.h defines. Private to this package.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/model/operations/operation.h"

namespace tfjob::model::layers {

// Specifies the arguments of a call: one operand, two operands, a condition and two operands, a
// list, a value and a key, a value and constant indices, or a value and an index for each axis.
enum class CallForm { kUnary, kBinary, kSelect, kList, kKey, kTake, kStarts };

// Contains the graph and the values that a function operates on. Operands that are numbers become
// constants in the graph.
struct OperationCall {
  graph::Builder& b;
  const Operation& operation;
  std::vector<graph::Output> x;
};

struct OperationKind {
  std::string_view module;      // "numpy": its full name is keras.src.ops.numpy
  std::string_view class_name;  // "Add"
  CallForm form;
  // Lists the arguments of the operation. Null if there are no arguments.
  void (*arguments)(Operation& operation, ArgumentVisitor& visitor);
  // Appends the ops and returns the results. Reports an error to the builder if operands are
  // incompatible.
  std::vector<graph::Output> (*apply)(const OperationCall& call);
};

// Return the functions that logical.cc, activations.cc, arrays.cc, rounding.cc and reductions.cc
// define.
std::span<const OperationKind> LogicalOperations();
std::span<const OperationKind> ActivationOperations();
std::span<const OperationKind> ArrayOperations();
std::span<const OperationKind> RoundingOperations();
std::span<const OperationKind> ReductionOperations();
// Returns the functions of all files.
std::span<const OperationKind> AllOperations();

// Limits the number of elements of constants that an operation adds to the graph. Without this
// limit, a file could cause the creation of huge constants.
inline constexpr int64_t kLongestConstant = int64_t{1} << 20;

// Lists the arguments `axis` and `keepdims` of a reduction.
void ReductionArguments(Operation& operation, ArgumentVisitor& visitor);
// Lists the argument `axis`, a single axis.
void AxisArgument(Operation& operation, ArgumentVisitor& visitor);
// Returns the axis, counted from 0. Reports an error to the builder if the axis does not exist.
int64_t AxisOf(const OperationCall& call, int64_t axis, int64_t rank);
bool IsFloatType(DType dtype);
// Returns the logical negation of the bool tensor x.
graph::Output Not(graph::Builder& b, graph::Output x);
// Returns x[key].
graph::Output GetItem(graph::Builder& b, graph::Output x, const std::vector<KeyPart>& key);

}  // namespace tfjob::model::layers
