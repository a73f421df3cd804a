// Implements layer normalization as one op. FuseLayerNormalization (passes.h) creates these ops on
// devices that have kernels for them; models build it from several ops.
#include <string>

#include "runtime/graph/family.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

// Returns the attribute "dtype", which is the type of the first output.
StatusOr<DType> ResultType(const Attributes& attributes) {
  const DType* dtype = attributes.Find<DType>("dtype");
  if (dtype != nullptr && (*dtype == DType::kFloat32 || IsHalf(*dtype))) return *dtype;
  return InvalidArgument("expected an attribute dtype: float32 or a half type");
}

// Checks x [..., n] and a vector float32[n].
Status CheckRows(const TensorType& x, const TensorType& vector) {
  if (x.shape.rank() < 2 || !IsFloat(x.dtype) || x.dtype == DType::kFloat64)
    return InvalidArgument("expected float32 or a half type, of rank 2 or more");
  const TensorType expected{DType::kFloat32, {x.shape.dim(-1)}};
  if (vector == expected) return OkStatus();
  return InvalidArgument("expected ", expected.ToString(), ", got ", vector.ToString());
}

TensorType RowStatistics(const Shape& x) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) rows *= x.dim(axis);
  return {DType::kFloat32, {2, rows}};
}

InferResult InferLayerNormalization(InferenceContext& context) {
  const std::vector<TensorType>& in = context.inputs;
  ASSIGN_OR_RETURN(const DType dtype, ResultType(context.attributes));
  RETURN_IF_ERROR(CheckRows(in[0], in[1]));
  RETURN_IF_ERROR(CheckRows(in[0], in[2]));
  return std::vector{TensorType{dtype, in[0].shape}, RowStatistics(in[0].shape)};
}

InferResult InferLayerNormalizationGrad(InferenceContext& context) {
  const std::vector<TensorType>& in = context.inputs;
  ASSIGN_OR_RETURN(const DType dtype, ResultType(context.attributes));
  RETURN_IF_ERROR(CheckRows(in[0], in[1]));
  RETURN_IF_ERROR(CheckRows(in[3], in[1]));
  if (in[3].shape != in[0].shape || in[2] != RowStatistics(in[0].shape))
    return InvalidArgument("expected statistics ", RowStatistics(in[0].shape).ToString(),
                           " and a gradient of the shape of x");
  if (in.size() == 5) {
    RETURN_IF_ERROR(CheckRows(in[4], in[1]));
    if (in[4].shape != in[0].shape)
      return InvalidArgument("expected an added gradient of the shape of x");
  }
  return std::vector{TensorType{dtype, in[0].shape}, in[1], in[1]};
}

}  // namespace

std::vector<Op> LayerNormalizationOps() {
  return {{"LayerNormalization", 3, 3, InferLayerNormalization, nullptr},
          {"LayerNormalizationGrad", 4, 5, InferLayerNormalizationGrad, nullptr}};
}

}  // namespace tfjob::graph
