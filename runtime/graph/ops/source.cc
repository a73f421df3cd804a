// Implements sources, variables and random numbers.
#include <limits>
#include <string>
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

// ---- inference

StatusOr<std::string> VariableOf(const InferenceContext& context) {
  const std::string* variable = context.attributes.Find<std::string>("variable");
  if (variable == nullptr || variable->empty()) {
    return InvalidArgument("expected an attribute variable, the name of a variable");
  }
  return *variable;
}

InferResult InferFromAttributes(InferenceContext& context) {
  const DType* dtype = context.attributes.Find<DType>("dtype");
  const Shape* shape = context.attributes.Find<Shape>("shape");
  if (dtype == nullptr || shape == nullptr) {
    return InvalidArgument("expected attributes dtype and shape");
  }
  RETURN_IF_ERROR(ExpectNoNegative(*shape));
  return std::vector{TensorType{*dtype, *shape}};
}

InferResult InferConst(InferenceContext& context) {
  const Tensor* value = context.attributes.Find<Tensor>("value");
  if (value == nullptr) return InvalidArgument("expected an attribute value, a tensor");
  return std::vector{TensorType{value->dtype(), value->shape()}};
}

InferResult InferRandom(InferenceContext& context) {
  const TensorType scalar{DType::kInt64, {}};
  if (context.inputs[0] != scalar || context.inputs[1] != scalar) {
    return InvalidArgument("expected step and seed as int64[]");
  }
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferFromAttributes(context));
  if (!IsFloat(types[0].dtype)) return InvalidArgument("expected a float type as dtype");
  return types;
}

// Returns whether an optimizer can update variables of this type. Half types are not supported,
// because variables are stored as float32.
bool IsTrained(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

InferResult InferApplyOptimizer(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::string variable, VariableOf(context));
  if (!IsFloat(context.inputs[0].dtype))
    return InvalidArgument("expected a gradient of a float type");
  if (context.inputs[1] != TensorType{DType::kInt64, {}}) {
    return InvalidArgument("expected the step as int64[]");
  }
  return std::vector<TensorType>();
}

InferResult InferApplyOptimizerRows(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::string variable, VariableOf(context));
  const TensorType &indices = context.inputs[0], &values = context.inputs[1];
  if (!IsTrained(values.dtype) || values.shape.rank() != 2)
    return InvalidArgument("expected values of float32 or float64, a matrix");
  if (indices != TensorType{DType::kInt64, {values.shape.dim(0)}})
    return InvalidArgument("expected one int64 index per row of the values");
  if (context.inputs[2] != TensorType{DType::kInt64, {}})
    return InvalidArgument("expected the step as int64[]");
  return std::vector<TensorType>();
}

// ---- builder functions

Output Random(Builder& b, std::string_view op, Output step, Output seed, Attributes attributes,
              DType dtype, Shape shape) {
  attributes.Set("dtype", dtype);
  attributes.Set("shape", std::move(shape));
  attributes.Set("op_id", b.NextOpId());
  return b.Add(op, {step, seed}, std::move(attributes));
}

template <typename T>
Tensor CastScalar(double value) {
  return Tensor::Scalar<T>(static_cast<T>(value));
}

// Converts a number. The truncated number must fit the type; otherwise, the behaviour is undefined.
template <typename T>
Output IntegerScalar(Builder& b, double value) {
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double end = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
  if (!(value > low - 1 || value == low) || !(value < end)) {
    return b.Fail(InvalidArgument(value, " is not a number of type ", Name(DTypeOf<T>::value)));
  }
  return Const(b, CastScalar<T>(value));
}

}  // namespace

InferResult InferWrite(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::string variable, VariableOf(context));
  return std::vector<TensorType>();
}

std::vector<Op> SourceOps() {
  return {
      {"Placeholder", 0, 0, InferFromAttributes, NoGradient, Effect::kFeed},
      {"Const", 0, 0, InferConst, NoGradient},
      {"Fill", 0, 0, InferFromAttributes, NoGradient},
      {"ReadVariable", 0, 0, InferFromAttributes, NoGradient, Effect::kRead},
      {"Assign", 1, 1, InferWrite, nullptr, Effect::kWrite},
      {"AssignAdd", 1, 1, InferWrite, nullptr, Effect::kWrite},
      {"ApplyOptimizer", 2, 2, InferApplyOptimizer, nullptr, Effect::kWrite},
      {"ApplyOptimizerRows", 3, 3, InferApplyOptimizerRows, nullptr, Effect::kWrite},
      {"RandomUniform", 2, 2, InferRandom, NoGradient},
      {"RandomNormal", 2, 2, InferRandom, NoGradient},
      {"TruncatedNormal", 2, 2, InferRandom, NoGradient},
  };
}

Output Placeholder(Builder& b, std::string_view name, DType dtype, Shape shape) {
  return b.Add("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(shape)}}, name);
}
Output Const(Builder& b, Tensor value, std::string_view name) {
  return b.Add("Const", {}, {{"value", std::move(value)}}, name);
}

Output Scalar(Builder& b, DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
      return Const(b, CastScalar<float>(value));
    case DType::kFloat64:
      return Const(b, CastScalar<double>(value));
    case DType::kInt32:
      return IntegerScalar<int32_t>(b, value);
    case DType::kInt64:
      return IntegerScalar<int64_t>(b, value);
    case DType::kUInt8:
      return IntegerScalar<uint8_t>(b, value);
    case DType::kBool:
      return Const(b, CastScalar<bool>(value));
    case DType::kBFloat16:
      return Const(b, Tensor::Scalar(BFloat16(static_cast<float>(value))));
    case DType::kFloat16:
      return Const(b, Tensor::Scalar(Float16(static_cast<float>(value))));
  }
  return b.Fail(InvalidArgument("a scalar of an unknown dtype"));
}

Output Fill(Builder& b, DType dtype, Shape shape, double value) {
  return b.Add("Fill", {}, {{"dtype", dtype}, {"shape", std::move(shape)}, {"value", value}});
}

Output ReadVariable(Builder& b, std::string_view variable, DType dtype, Shape shape) {
  Attributes attributes{
      {"variable", std::string(variable)}, {"dtype", dtype}, {"shape", std::move(shape)}};
  return b.Add("ReadVariable", {}, std::move(attributes), variable);
}

void Assign(Builder& b, std::string_view variable, Output value) {
  b.Add("Assign", {value}, {{"variable", std::string(variable)}}, StrCat(variable, "/Assign"));
}

void AssignAdd(Builder& b, std::string_view variable, Output value) {
  b.Add("AssignAdd", {value}, {{"variable", std::string(variable)}},
        StrCat(variable, "/AssignAdd"));
}

void ApplyOptimizer(Builder& b, std::string_view variable, Output gradient, Output step,
                    Attributes optimizer) {
  optimizer.Set("variable", std::string(variable));
  b.Add("ApplyOptimizer", {gradient, step}, std::move(optimizer), StrCat(variable, "/Apply"));
}

void ApplyOptimizerRows(Builder& b, std::string_view variable, Output indices, Output values,
                        Output step, Attributes optimizer) {
  optimizer.Set("variable", std::string(variable));
  b.Add("ApplyOptimizerRows", {indices, values, step}, std::move(optimizer),
        StrCat(variable, "/Apply"));
}

Output RandomUniform(Builder& b, Output step, Output seed, DType dtype, Shape shape, double low,
                     double high) {
  return Random(b, "RandomUniform", step, seed, {{"minval", low}, {"maxval", high}}, dtype,
                std::move(shape));
}

Output RandomNormal(Builder& b, Output step, Output seed, DType dtype, Shape shape, double mean,
                    double stddev, int64_t replica) {
  Attributes attributes{{"mean", mean}, {"stddev", stddev}};
  if (replica != 0) attributes.Set("replica", replica);
  return Random(b, "RandomNormal", step, seed, std::move(attributes), dtype, std::move(shape));
}

Output TruncatedNormal(Builder& b, Output step, Output seed, DType dtype, Shape shape, double mean,
                       double stddev) {
  return Random(b, "TruncatedNormal", step, seed, {{"mean", mean}, {"stddev", stddev}}, dtype,
                std::move(shape));
}

}  // namespace tfjob::graph
