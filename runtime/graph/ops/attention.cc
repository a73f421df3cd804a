// Implements attention as one op. FuseAttention (passes.h) creates these ops on devices that have
// kernels for them; models build attention from several ops.
#include <string>

#include "runtime/graph/family.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

Status ExpectTensor(const TensorType& type, DType dtype, const Shape& shape) {
  const TensorType expected{dtype, shape};
  if (type == expected) return OkStatus();
  return InvalidArgument("expected ", expected.ToString(), ", got ", type.ToString());
}

// Checks the inputs from `first` on: a mask, a step and a seed, each of which may be absent.
Status CheckOptional(const std::vector<TensorType>& in, size_t first) {
  const size_t more = in.size() - first;
  if (more % 2 == 1) {
    const Shape &q = in[0].shape, &k = in[1].shape, &mask = in[first].shape;
    const Shape scores({q.dim(0), q.dim(2), q.dim(1), k.dim(1)});
    if (in[first].dtype != DType::kBool)
      return InvalidArgument("expected a mask of type bool, got ", in[first].ToString());
    ASSIGN_OR_RETURN(const Shape both, BroadcastShapes(mask, scores));
    if (both != scores)
      return InvalidArgument("expected a mask that broadcasts to ", scores.ToString(), ", got ",
                             mask.ToString());
  }
  for (size_t i = first + more % 2; i < in.size(); ++i)
    RETURN_IF_ERROR(ExpectTensor(in[i], DType::kInt64, Shape({})));
  return OkStatus();
}

Status CheckHeads(const std::vector<TensorType>& in) {
  const Shape &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  const DType dtype = in[0].dtype;
  if (!IsHalf(dtype) || q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    return InvalidArgument("expected tensors [batch,positions,heads,size] of a half type");
  RETURN_IF_ERROR(ExpectTensor(in[1], dtype, {q.dim(0), k.dim(1), q.dim(2), q.dim(3)}));
  return ExpectTensor(in[2], dtype, {q.dim(0), k.dim(1), q.dim(2), v.dim(3)});
}

Shape StatisticsOf(const Shape& q) {
  return {2, q.dim(0), q.dim(2), q.dim(1)};
}
Shape ResultOf(const Shape& q, const Shape& v) {
  return {q.dim(0), q.dim(1), q.dim(2), v.dim(3)};
}

InferResult InferAttention(InferenceContext& context) {
  const std::vector<TensorType>& in = context.inputs;
  RETURN_IF_ERROR(CheckHeads(in));
  RETURN_IF_ERROR(CheckOptional(in, 3));
  return std::vector<TensorType>{{in[0].dtype, ResultOf(in[0].shape, in[2].shape)},
                                 {DType::kFloat32, StatisticsOf(in[0].shape)}};
}

InferResult InferAttentionGrad(InferenceContext& context) {
  const std::vector<TensorType>& in = context.inputs;
  RETURN_IF_ERROR(CheckHeads(in));
  const Shape result = ResultOf(in[0].shape, in[2].shape);
  RETURN_IF_ERROR(ExpectTensor(in[3], in[0].dtype, result));
  RETURN_IF_ERROR(ExpectTensor(in[4], DType::kFloat32, StatisticsOf(in[0].shape)));
  RETURN_IF_ERROR(ExpectTensor(in[5], in[0].dtype, result));
  RETURN_IF_ERROR(CheckOptional(in, 6));
  return std::vector<TensorType>{in[0], in[1], in[2]};
}

}  // namespace

std::vector<Op> AttentionOps() {
  return {{"Attention", 3, 6, InferAttention, nullptr},
          {"AttentionGrad", 6, 9, InferAttentionGrad, nullptr}};
}

}  // namespace tfjob::graph
