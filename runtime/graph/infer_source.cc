#include <algorithm>

#include "runtime/graph/infer.h"

namespace tfjob::graph {
namespace {

StatusOr<std::string> VariableOf(const InferenceContext& context) {
  const std::string* variable = context.attributes.Find<std::string>("variable");
  if (variable == nullptr || variable->empty()) {
    return InvalidArgument("expected an attribute variable, the name of a variable");
  }
  return *variable;
}

}  // namespace

InferResult InferFromAttributes(InferenceContext& context) {
  const DType* dtype = context.attributes.Find<DType>("dtype");
  const Shape* shape = context.attributes.Find<Shape>("shape");
  if (dtype == nullptr || shape == nullptr) {
    return InvalidArgument("expected attributes dtype and shape");
  }
  if (std::ranges::any_of(shape->dims(), [](int64_t dim) { return dim < 0; })) {
    return InvalidArgument("expected a shape without negative dimensions, got ", shape->ToString());
  }
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
  if (!IsFloat(types[0].dtype)) return InvalidArgument("expected dtype float32 or float64");
  return types;
}

InferResult InferWrite(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::string variable, VariableOf(context));
  return std::vector<TensorType>();
}

InferResult InferApplyOptimizer(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::string variable, VariableOf(context));
  if (!IsFloat(context.inputs[0].dtype)) {
    return InvalidArgument("expected a gradient of float32 or float64");
  }
  if (context.inputs[1] != TensorType{DType::kInt64, {}}) {
    return InvalidArgument("expected the step as int64[]");
  }
  return std::vector<TensorType>();
}

}  // namespace tfjob::graph
