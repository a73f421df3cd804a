// Defines the functions of keras.ops that compute with truth values. Keras' layers use these
// functions to derive masks, so a functional model may contain them even if its author never called
// them.
#include <optional>
#include <string>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/operations/operation_table.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;
using Outputs = std::vector<Output>;

// Returns, for each element, whether it differs from 0. NaN differs from 0.
Output Truth(Builder& b, Output x) {
  return Cast(b, x, DType::kBool);
}

Outputs And(const OperationCall& call) {
  Builder& b = call.b;
  return {Select(b, Truth(b, call.x[0]), Truth(b, call.x[1]), Scalar(b, DType::kBool, 0))};
}

Outputs Either(const OperationCall& call) {
  return {Or(call.b, Truth(call.b, call.x[0]), Truth(call.b, call.x[1]))};
}

Outputs Xor(const OperationCall& call) {
  Builder& b = call.b;
  return {Not(b, Equal(b, Truth(b, call.x[0]), Truth(b, call.x[1])))};
}

Outputs Negated(const OperationCall& call) {
  return {Not(call.b, Truth(call.b, call.x[0]))};
}

template <Output (*kExtreme)(Builder&, Output, std::vector<int64_t>, bool)>
Outputs Quantified(const OperationCall& call) {
  Builder& b = call.b;
  const Output numbers = Cast(b, Truth(b, call.x[0]), DType::kInt32);
  return {Truth(b, kExtreme(b, numbers, call.operation.axes, call.operation.keepdims))};
}

void TypeArgument(Operation& operation, ArgumentVisitor& visitor) {
  visitor.Text("dtype", operation.type_name, /*required=*/false);
}
template <int kValue>
Outputs Constant(const OperationCall& call) {
  Builder& b = call.b;
  const std::string& name = call.operation.type_name;
  const std::optional<DType> dtype = name.empty() ? b.dtype(call.x[0]) : ParseDType(name);
  if (!dtype) return {b.Fail(InvalidArgument("type ", name, " is not supported"))};
  return {Fill(b, *dtype, b.shape(call.x[0]), kValue)};
}

constexpr OperationKind kLogicalOperations[] = {
    {"numpy", "LogicalAnd", CallForm::kBinary, nullptr, And},
    {"numpy", "LogicalOr", CallForm::kBinary, nullptr, Either},
    {"numpy", "LogicalXor", CallForm::kBinary, nullptr, Xor},
    {"numpy", "LogicalNot", CallForm::kUnary, nullptr, Negated},
    {"numpy", "Any", CallForm::kUnary, ReductionArguments, Quantified<graph::Max>},
    {"numpy", "All", CallForm::kUnary, ReductionArguments, Quantified<graph::Min>},
    {"numpy", "ZerosLike", CallForm::kUnary, TypeArgument, Constant<0>},
    {"numpy", "OnesLike", CallForm::kUnary, TypeArgument, Constant<1>},
};

}  // namespace

std::span<const OperationKind> LogicalOperations() {
  return kLogicalOperations;
}

}  // namespace tfjob::model::layers
