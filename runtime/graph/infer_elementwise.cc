#include <algorithm>

#include "runtime/graph/infer.h"

namespace tfjob::graph {
namespace {

Status ExpectFloat(const TensorType& type) {
  return IsFloat(type.dtype) ? OkStatus() : InvalidArgument("expected float32 or float64");
}

Status ExpectNumeric(const TensorType& type) {
  return IsNumeric(type.dtype) ? OkStatus()
                               : InvalidArgument("expected float32, float64, int32 or int64");
}

Status ExpectEqualTypes(const InferenceContext& context, size_t i, size_t j) {
  return context.inputs[i].dtype == context.inputs[j].dtype
             ? OkStatus()
             : InvalidArgument("expected inputs of one dtype; add a Cast");
}

StatusOr<Shape> Broadcast(const InferenceContext& context) {
  return BroadcastShapes(context.inputs[0].shape, context.inputs[1].shape);
}

}  // namespace

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

bool IsNumeric(DType dtype) {
  return IsFloat(dtype) || dtype == DType::kInt32 || dtype == DType::kInt64;
}

StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const int64_t left = i <= a.rank() ? a.dim(-i) : 1;
    const int64_t right = i <= b.rank() ? b.dim(-i) : 1;
    if (left != right && left != 1 && right != 1) {
      return InvalidArgument(
          "expected shapes that broadcast (each dimension equal or 1, from the "
          "last one on), got ",
          left, " against ", right, ", ", i - 1, " dimensions before the last");
    }
    dims[static_cast<size_t>(rank - i)] = left == 1 ? right : left;
  }
  return Shape(std::move(dims));
}

InferResult InferSame(InferenceContext& context) {
  return std::vector{context.inputs[0]};
}

InferResult InferSameNumeric(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectNumeric(context.inputs[0]));
  return InferSame(context);
}

InferResult InferSameFloat(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  return InferSame(context);
}

InferResult InferClip(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  const double* low = context.attributes.Find<double>("clip_value_min");
  const double* high = context.attributes.Find<double>("clip_value_max");
  if (low == nullptr || high == nullptr || !(*low <= *high)) {
    return InvalidArgument("expected attributes clip_value_min ≤ clip_value_max");
  }
  return InferSame(context);
}

InferResult InferGradOfSame(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  if (context.inputs[0] != context.inputs[1]) {
    return InvalidArgument("expected two inputs of one dtype and shape");
  }
  return InferSame(context);
}

InferResult InferBinaryNumeric(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectNumeric(context.inputs[0]));
  RETURN_IF_ERROR(ExpectEqualTypes(context, 0, 1));
  ASSIGN_OR_RETURN(Shape shape, Broadcast(context));
  return std::vector{TensorType{context.inputs[0].dtype, std::move(shape)}};
}

InferResult InferBinaryFloat(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  return InferBinaryNumeric(context);
}

InferResult InferEqual(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectEqualTypes(context, 0, 1));
  ASSIGN_OR_RETURN(Shape shape, Broadcast(context));
  return std::vector{TensorType{DType::kBool, std::move(shape)}};
}

InferResult InferCompare(InferenceContext& context) {
  if (context.inputs[0].dtype == DType::kBool) return InvalidArgument("expected numbers");
  return InferEqual(context);
}

InferResult InferSelect(InferenceContext& context) {
  if (context.inputs[0].dtype != DType::kBool) {
    return InvalidArgument("expected a bool condition as input 0");
  }
  RETURN_IF_ERROR(ExpectEqualTypes(context, 1, 2));
  ASSIGN_OR_RETURN(Shape values, BroadcastShapes(context.inputs[1].shape, context.inputs[2].shape));
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(context.inputs[0].shape, values));
  return std::vector{TensorType{context.inputs[1].dtype, std::move(shape)}};
}

InferResult InferCast(InferenceContext& context) {
  const DType* dtype = context.attributes.Find<DType>("dtype");
  if (dtype == nullptr) return InvalidArgument("expected an attribute dtype");
  return std::vector{TensorType{*dtype, context.inputs[0].shape}};
}

InferResult InferDropout(InferenceContext& context) {
  RETURN_IF_ERROR(ExpectFloat(context.inputs[0]));
  const TensorType scalar{DType::kInt64, {}};
  if (context.inputs[1] != scalar || context.inputs[2] != scalar) {
    return InvalidArgument("expected step and seed as int64[]");
  }
  const double rate = context.attributes.Get<double>("rate", -1);
  if (!(rate >= 0 && rate < 1)) {
    return InvalidArgument("expected an attribute rate of at least 0 and below 1, got ", rate);
  }
  return InferSame(context);
}

InferResult InferFusedElementwise(InferenceContext& context) {
  const Shape* shape = context.attributes.Find<Shape>("shape");
  if (shape == nullptr || context.attributes.Find<std::string>("program") == nullptr) {
    return InvalidArgument("expected attributes program and shape");
  }
  for (size_t i = 0; i < context.inputs.size(); ++i)
    RETURN_IF_ERROR(ExpectEqualTypes(context, 0, i));
  return std::vector{TensorType{context.inputs[0].dtype, *shape}};
}

}  // namespace tfjob::graph
