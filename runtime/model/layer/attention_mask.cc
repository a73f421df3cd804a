#include "runtime/model/layer/attention_mask.h"

#include <numeric>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

// Reshapes a mask [batch,n] to [batch,1,…,n,…,1], where n is the size of axis `axis`.
Output Expanded(Builder& b, Output mask, int rank, int axis) {
  const Shape shape = b.shape(mask);
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims[0] = shape.dim(0);
  dims[static_cast<size_t>(axis)] = shape.dim(-1);
  return Reshape(b, mask, Shape(std::move(dims)));
}

// Returns the numbers 0, 1, … as a tensor of the given shape.
Output Range(Builder& b, Shape shape) {
  Tensor tensor(DType::kInt32, std::move(shape));
  const auto values = tensor.data<int32_t>();
  std::iota(values.begin(), values.end(), 0);
  return Const(b, std::move(tensor));
}

}  // namespace

void AttentionMask::Add(Output mask) {
  if (!mask.valid()) return;
  mask = Cast(b_, mask, DType::kBool);
  combined_ = combined_.valid() ? Select(b_, combined_, mask, Scalar(b_, DType::kBool, 0)) : mask;
}

void AttentionMask::AddKeys(Output mask, int rank) {
  if (mask.valid()) Add(Expanded(b_, mask, rank, rank - 1));
}

void AttentionMask::AddQueries(Output mask, int rank) {
  if (mask.valid()) Add(Expanded(b_, mask, rank, rank - 2));
}

// Adds ops that compute the mask in each run. A constant in the graph could be as large as the
// scores.
void AttentionMask::AddCausal(int64_t queries, int64_t keys) {
  Add(GreaterEqual(b_, Range(b_, {queries, 1}), Range(b_, {1, keys})));
}

void AttentionMask::AddWindow(int64_t queries, int64_t keys, int64_t window) {
  const Output distance = Abs(b_, Sub(b_, Range(b_, {queries, 1}), Range(b_, {1, keys})));
  Add(Less(b_, distance, Scalar(b_, DType::kInt32, static_cast<double>(window))));
}

Status CheckPositions(const Shape& query, const Shape& value) {
  constexpr int64_t kMost = 1 << 24;
  if (query.dim(0) <= kMost && value.dim(0) <= kMost) return OkStatus();
  return InvalidArgument("expected at most 2^24 positions, got ", query.dim(0), " and ",
                         value.dim(0));
}

}  // namespace tfjob::model
