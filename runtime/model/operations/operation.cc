#include "runtime/model/operations/operation.h"

#include <algorithm>

#include "runtime/graph/ops.h"
#include "runtime/model/operations/operation_table.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr std::string_view kModules = "keras.src.ops.";

// Returns the type that Keras promotes two types to; their order does not matter. Unlike in NumPy,
// an integer type and a float type are promoted to the float type, regardless of their sizes.
DType Promoted(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (IsFloatType(a) != IsFloatType(b)) return IsFloatType(a) ? a : b;
  const auto either = [&](DType dtype) { return a == dtype || b == dtype; };
  if (!IsFloatType(a)) return either(DType::kInt64) ? DType::kInt64 : DType::kInt32;
  return either(DType::kFloat64) ? DType::kFloat64 : DType::kFloat32;
}

// Returns whether the operand is the condition of a selection, which is not converted to the common
// type.
bool IsCondition(const Operation& operation, size_t operand) {
  return operation.kind->form == CallForm::kSelect && operand == 0;
}

// Returns the common type of the operands. As in Keras, numbers are converted to the type of the
// tensors, but if a number is not an integer and the tensors are integers, all operands become
// float32.
DType SharedType(const Builder& b, const Operation& operation, const std::vector<Output>& inputs) {
  std::optional<DType> found;
  const auto add = [&](int input) {
    const DType own = b.dtype(inputs[static_cast<size_t>(input)]);
    found = found ? Promoted(*found, own) : own;
  };
  bool fraction = false;
  for (const int input : operation.list) add(input);
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    const CallOperand& operand = operation.operands[i];
    if (IsCondition(operation, i)) continue;
    if (operand.input != kNoInput) {
      add(operand.input);
    } else {
      fraction = fraction || !operand.integer;
    }
  }
  const DType dtype = found.value_or(DType::kFloat32);
  return fraction && !IsFloatType(dtype) ? DType::kFloat32 : dtype;
}

Output ArrayOf(Builder& b, const CallOperand& operand, DType dtype) {
  Tensor array(DType::kFloat64, Shape(operand.dims));
  std::ranges::copy(operand.array, array.data<double>().begin());
  return Cast(b, Const(b, std::move(array)), dtype);
}

std::vector<Output> ValuesOf(Builder& b, const Operation& operation,
                             const std::vector<Output>& inputs) {
  std::vector<Output> values;
  const DType dtype = SharedType(b, operation, inputs);
  for (int index : operation.list)
    values.push_back(Cast(b, inputs[static_cast<size_t>(index)], dtype));
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    const CallOperand& operand = operation.operands[i];
    if (operand.input == kNoInput) {
      values.push_back(operand.array.empty() ? Scalar(b, dtype, operand.number)
                                             : ArrayOf(b, operand, dtype));
      continue;
    }
    const Output input = inputs[static_cast<size_t>(operand.input)];
    values.push_back(IsCondition(operation, i) ? input : Cast(b, input, dtype));
  }
  return values;
}

// Returns InvalidArgument unless all tensors have the same rank. If the ranks differ, broadcasting
// would align the batch axis of one tensor with a different axis of another tensor. Ignores
// scalars, which broadcast like numbers; they occur only in steps that a program composes
// (runtime/steps).
Status CheckRanks(const Builder& b, const Operation& operation, const std::vector<Output>& inputs) {
  if (operation.kind->class_name == "Einsum") return OkStatus();
  const Shape* first = nullptr;
  for (const CallOperand& operand : operation.operands) {
    if (operand.input == kNoInput) continue;
    const Shape& shape = b.shape(inputs[static_cast<size_t>(operand.input)]);
    if (shape.rank() == 0) continue;
    if (first == nullptr) first = &shape;
    if (shape.rank() == first->rank()) continue;
    return InvalidArgument("expected tensors of one rank, got ", ExampleOf(*first).ToString(),
                           " and ", ExampleOf(shape).ToString(), " for each example");
  }
  return OkStatus();
}

std::vector<Output> RunUnchecked(Builder& b, const Operation& operation,
                                 const std::vector<Output>& inputs) {
  return operation.kind->apply({b, operation, ValuesOf(b, operation, inputs)});
}

std::vector<Output> Run(Builder& b, const Operation& operation, const std::vector<Output>& inputs) {
  const Status ranks = CheckRanks(b, operation, inputs);
  if (!ranks.ok()) return {b.Fail(ranks)};
  return RunUnchecked(b, operation, inputs);
}

Status CombinesExamples() {
  return InvalidArgument(
      "expected a function of each example, whose result keeps the batch as its first axis");
}

// Returns whether the operation computes each example separately, given that its result has the
// right shape. Only Einsum may combine several examples nevertheless. To prevent this, the first
// axis of all its tensors, and no other axis, must have the same letter.
bool KeepsExamplesApart(const Operation& operation) {
  if (operation.kind->class_name != "Einsum") return true;
  const std::string& text = operation.subscripts;  // "abc,acd->abd": RunUnchecked has accepted it
  const size_t comma = text.find(','), arrow = text.find("->");
  const std::string terms[] = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1)};
  const std::string result = text.substr(arrow + 2);
  for (size_t i = 0; i < std::size(terms); ++i) {
    const bool tensor = operation.operands[i].input != kNoInput;
    if (terms[i].find(result[0]) != (tensor ? 0 : std::string::npos)) return false;
  }
  return true;
}

// Returns the types of the results for the given batch size, by applying the operation to
// placeholders in a separate graph. Returns InvalidArgument if the size of a result's first axis is
// not the batch size.
StatusOr<std::vector<TensorType>> TypesFor(const Operation& operation,
                                           std::span<const TensorType> in, int64_t batch_size) {
  Builder b;
  std::vector<Output> inputs;
  for (size_t i = 0; i < in.size(); ++i)
    inputs.push_back(
        Placeholder(b, StrCat("input_", i), in[i].dtype, Batched(batch_size, in[i].shape)));
  const std::vector<Output> outputs = Run(b, operation, inputs);
  RETURN_IF_ERROR(b.status());
  std::vector<TensorType> types;
  for (const Output output : outputs) {
    const Shape& shape = b.shape(output);
    if (shape.rank() == 0 || shape.dim(0) != batch_size) return CombinesExamples();
    types.push_back({b.dtype(output), ExampleOf(shape)});
  }
  return types;
}

}  // namespace

bool IsFloatType(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat16;
}

std::string_view Operation::class_name() const {
  return kind->class_name;
}

std::string_view Operation::module() const {
  return kind->module;
}

void Operation::Arguments(ArgumentVisitor& visitor) {
  if (kind->arguments != nullptr) kind->arguments(*this, visitor);
}

void Operation::CallArguments(CallVisitor& visitor) {
  switch (kind->form) {
    case CallForm::kUnary:
      operands.resize(1);
      return visitor.Operand("x", operands[0]);
    case CallForm::kBinary:
      operands.resize(2);
      visitor.Operand("x1", operands[0]);
      return visitor.Operand("x2", operands[1]);
    case CallForm::kSelect:
      operands.resize(3);
      visitor.Operand("condition", operands[0]);
      visitor.Operand("x1", operands[1]);
      return visitor.Operand("x2", operands[2]);
    case CallForm::kList:
      return visitor.Inputs("xs", list, /*required=*/true);
    case CallForm::kKey:
      operands.resize(1);
      visitor.Operand("x", operands[0]);
      return visitor.Key("key", key);
    case CallForm::kTake:
      operands.resize(2);
      visitor.Operand("x", operands[0]);
      return visitor.Operand("indices", operands[1]);
    case CallForm::kStarts:
      operands.resize(1);
      visitor.Operand("inputs", operands[0]);
      return visitor.Key("start_indices", key);
  }
}

// Accepts a function only if the first axis of each result has the batch size, and no other axis
// depends on the batch size. Tries two batch sizes, because the size of an axis may be equal to one
// of them by coincidence.
StatusOr<std::vector<TensorType>> Operation::OutputTypes(std::span<const TensorType> in) const {
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, TypesFor(*this, in, 1'013));
  ASSIGN_OR_RETURN(std::vector<TensorType> others, TypesFor(*this, in, 1'009));
  if (types != others || !KeepsExamplesApart(*this)) return CombinesExamples();
  return others;
}

std::vector<Output> Operation::Apply(LayerCall& call) const {
  return Run(call.b, *this, call.inputs);
}

std::vector<Output> Operation::ApplyToArrays(LayerCall& call) const {
  return broadcasts() ? RunUnchecked(call.b, *this, call.inputs) : Apply(call);
}

bool Operation::broadcasts() const {
  const bool several = kind->form == CallForm::kBinary || kind->form == CallForm::kSelect;
  return several && kind->class_name != "Matmul" && kind->class_name != "Einsum";
}

std::vector<std::string> OperationClasses() {
  std::vector<std::string> names;
  for (const OperationKind& kind : AllOperations()) names.emplace_back(kind.class_name);
  return names;
}

std::optional<Operation> MakeOperation(std::string_view module, std::string_view class_name) {
  for (const OperationKind& kind : AllOperations()) {
    if (kind.class_name != class_name || !module.starts_with(kModules) ||
        !module.ends_with(kind.module))
      continue;
    Operation operation;
    operation.kind = &kind;
    return operation;
  }
  return std::nullopt;
}

}  // namespace tfjob::model::layers
