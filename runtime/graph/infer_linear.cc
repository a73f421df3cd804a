#include "runtime/graph/infer.h"

namespace tfjob::graph {
namespace {

Status ExpectFloatMatrix(const TensorType& type) {
  if (IsFloat(type.dtype) && type.shape.rank() == 2) return OkStatus();
  return InvalidArgument("expected float32 or float64 of rank 2");
}

InferResult LossAndBackprop(const TensorType& logits) {
  return std::vector{TensorType{logits.dtype, {logits.shape.dim(0)}}, logits};
}

}  // namespace

InferResult InferMatMul(InferenceContext& context) {
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  RETURN_IF_ERROR(ExpectFloatMatrix(a));
  RETURN_IF_ERROR(ExpectFloatMatrix(b));
  if (a.dtype != b.dtype) return InvalidArgument("expected inputs of one dtype; add a Cast");
  const bool transpose_a = context.attributes.Get("transpose_a", false);
  const bool transpose_b = context.attributes.Get("transpose_b", false);
  const int64_t inner_a = a.shape.dim(transpose_a ? 0 : 1);
  const int64_t inner_b = b.shape.dim(transpose_b ? 1 : 0);
  if (inner_a != inner_b) {
    return InvalidArgument("expected equal inner dimensions, got ", inner_a, " and ", inner_b);
  }
  return std::vector{
      TensorType{a.dtype, {a.shape.dim(transpose_a ? 1 : 0), b.shape.dim(transpose_b ? 0 : 1)}}};
}

InferResult InferMatMulAccumulate(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> product, InferMatMul(context));
  return InferWrite(context);
}

InferResult InferFusedMatMul(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferMatMul(context));
  if (context.attributes.Get("bias", false) != (context.inputs.size() == 3)) {
    return InvalidArgument("expected a third input if and only if the attribute bias is set");
  }
  if (context.inputs.size() == 3 &&
      context.inputs[2] != TensorType{types[0].dtype, {types[0].shape.dim(1)}}) {
    return InvalidArgument("expected a bias ", Name(types[0].dtype), "[", types[0].shape.dim(1),
                           "]");
  }
  return types;
}

InferResult InferRows(InferenceContext& context) {
  if (!IsFloat(context.inputs[0].dtype) || context.inputs[0].shape.rank() < 1) {
    return InvalidArgument("expected float32 or float64 of rank 1 or more");
  }
  return std::vector{context.inputs[0]};
}

InferResult InferBiasAdd(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferRows(context));
  const TensorType bias{types[0].dtype, {types[0].shape.dim(-1)}};
  if (context.inputs[1] != bias) return InvalidArgument("expected a bias ", bias.ToString());
  return types;
}

InferResult InferBiasAddGrad(InferenceContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferRows(context));
  return std::vector{TensorType{types[0].dtype, {types[0].shape.dim(-1)}}};
}

InferResult InferSparseCrossEntropy(InferenceContext& context) {
  const TensorType& logits = context.inputs[0];
  const TensorType& labels = context.inputs[1];
  RETURN_IF_ERROR(ExpectFloatMatrix(logits));
  if (IsFloat(labels.dtype) || labels.dtype == DType::kBool) {
    return InvalidArgument("expected labels of int32, int64 or uint8");
  }
  if (labels.shape != Shape{logits.shape.dim(0)}) {
    return InvalidArgument("expected labels of shape [", logits.shape.dim(0),
                           "], one per row of the logits");
  }
  return LossAndBackprop(logits);
}

InferResult InferCrossEntropy(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloatMatrix(context.inputs[0]));
  if (context.inputs[0] != context.inputs[1]) {
    return InvalidArgument("expected labels of the logits' dtype and shape");
  }
  return LossAndBackprop(context.inputs[0]);
}

}  // namespace tfjob::graph
