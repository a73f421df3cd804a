// Implements ops that access rows by index.
#include <string>
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

bool IsIndex(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64;
}

// Checks that the inputs are indices [n] and a matrix of n rows.
Status ExpectIndexedRows(const TensorType& indices, const TensorType& rows) {
  if (rows.shape.rank() != 2 || !IsFloat(rows.dtype))
    return InvalidArgument("expected rows of a float type, a matrix");
  if (!IsIndex(indices.dtype) || indices.shape != Shape{rows.shape.dim(0)})
    return InvalidArgument("expected one int32 or int64 index per row");
  return OkStatus();
}

InferResult InferGather(InferenceContext& context) {
  const TensorType &params = context.inputs[0], &indices = context.inputs[1];
  if (params.shape.rank() != 2) return InvalidArgument("expected a matrix");
  if (!IsIndex(indices.dtype) || indices.shape.rank() != 1)
    return InvalidArgument("expected a list of int32 or int64 indices");
  return std::vector{TensorType{params.dtype, {indices.shape.dim(0), params.shape.dim(1)}}};
}

InferResult InferDeduplicate(InferenceContext& context) {
  const TensorType &indices = context.inputs[0], &values = context.inputs[1];
  RETURN_IF_ERROR(ExpectIndexedRows(indices, values));
  return std::vector{TensorType{DType::kInt64, indices.shape}, values};
}

InferResult InferUnsortedSegmentSum(InferenceContext& context) {
  const TensorType &data = context.inputs[0], &indices = context.inputs[1];
  RETURN_IF_ERROR(ExpectIndexedRows(indices, data));
  const int64_t rows = context.attributes.Get<int64_t>("num_segments", -1);
  if (rows < 0) return InvalidArgument("expected the attribute num_segments, at least 0");
  return std::vector{TensorType{data.dtype, {rows, data.shape.dim(1)}}};
}

Gradient GatherGradient(GradientContext& c) {
  c.slices.push_back({.input = 0, .indices = c.input(1), .values = c.dy()});
  return {Output(), Output()};
}

Gradient UnsortedSegmentSumGradient(GradientContext& c) {
  return {Gather(c.b, c.dy(), c.input(1)), Output()};
}

// Returns the name of the variable that `params` reads, for error messages, or "" if `params` is
// not the value of a variable.
std::string TableName(const Builder& b, Output params) {
  const Node& node = b.graph().node(params);
  return node.op == "ReadVariable" ? node.attributes.Get("variable", std::string()) : "";
}

}  // namespace

std::vector<Op> GatherOps() {
  return {
      {"Gather", 2, 2, InferGather, GatherGradient},
      {"DeduplicateIndexedSlices", 2, 2, InferDeduplicate, nullptr},
      {"UnsortedSegmentSum", 2, 2, InferUnsortedSegmentSum, UnsortedSegmentSumGradient},
  };
}

Output Gather(Builder& b, Output params, Output indices) {
  if (!params.valid() || !indices.valid() || b.shape(params).rank() == 0)
    return b.Add("Gather", {params, indices});  // reports the error
  const Shape table = b.shape(params), list = b.shape(indices);
  std::vector<int64_t> dims = list.dims();
  dims.insert(dims.end(), table.dims().begin() + 1, table.dims().end());
  Attributes attributes;
  if (std::string name = TableName(b, params); !name.empty()) attributes.Set("table", name);
  if (table.rank() != 2) {
    const int64_t rows = table.dim(0);
    params = Reshape(b, params, {rows, rows == 0 ? 0 : table.num_elements() / rows});
  }
  if (list.rank() != 1) indices = Reshape(b, indices, {list.num_elements()});
  const Output rows = b.Add("Gather", {params, indices}, std::move(attributes));
  if (!rows.valid() || b.shape(rows) == Shape(dims)) return rows;
  return Reshape(b, rows, Shape(std::move(dims)));
}

DistinctRows DeduplicateIndexedSlices(Builder& b, Output indices, Output values) {
  const Output first = b.Add("DeduplicateIndexedSlices", {indices, values});
  if (!first.valid()) return {};
  return {.indices = first, .values = {first.node, 1}};
}

Output UnsortedSegmentSum(Builder& b, Output data, Output indices, int64_t num_segments) {
  return b.Add("UnsortedSegmentSum", {data, indices}, {{"num_segments", num_segments}});
}

}  // namespace tfjob::graph
