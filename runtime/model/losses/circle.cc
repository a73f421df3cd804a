#include <numeric>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::losses {
namespace {

constexpr double kCircleGamma = 80;

// Compares every number with every other one: returns bool [n,n].
Output EqualPairs(Builder& b, Output numbers) {
  const int64_t n = b.shape(numbers).num_elements();
  return Equal(b, Reshape(b, numbers, {n, 1}), Reshape(b, numbers, {1, n}));
}

// Returns bool [n,n], which is true on the diagonal.
Output Diagonal(Builder& b, int64_t n) {
  Tensor rows(DType::kInt64, Shape({n}));
  std::iota(rows.data<int64_t>().begin(), rows.data<int64_t>().end(), 0);
  return EqualPairs(b, Const(b, std::move(rows)));
}

Output AtLeastZero(Builder& b, Output x) {
  return Maximum(b, x, Number(b, x, 0));
}

// Returns log Σ exp(x) over the elements of each row for which `counts` is true.
Output LogSumExpOfRows(Builder& b, Output counts, Output x) {
  const Output counted = Select(b, counts, x, Number(b, x, kLogOfZero));
  const Output most = Max(b, counted, {1}, /*keep_dims=*/true);
  const Output sum = Sum(b, Exp(b, Sub(b, counted, most)), {1});
  return Add(b, Reshape(b, most, {b.shape(x).dim(0)}), Log(b, sum));
}

}  // namespace

Output Circle(Builder& b, const Loss& loss, Output p, Output y) {
  if (!b.ok()) return {};
  const double gamma = loss.gamma.value_or(kCircleGamma), margin = loss.margin;
  const Output distance = AtLeastZero(b, OneMinus(b, MatMul(b, p, p, false, true)));
  const Output no = Scalar(b, DType::kBool, 0), yes = Scalar(b, DType::kBool, 1);
  const Output same = EqualPairs(b, y);
  const Output other = Select(b, same, no, yes);
  const Output positive =
      loss.remove_diagonal ? Select(b, Diagonal(b, b.shape(p).dim(0)), no, same) : same;
  const Output pull = Mul(b, AtLeastZero(b, Plus(b, distance, margin)), Plus(b, distance, -margin));
  const Output push = Mul(b, AtLeastZero(b, Plus(b, Neg(b, distance), 1 + margin)),
                          Plus(b, Neg(b, distance), 1 - margin));
  const Output near = LogSumExpOfRows(b, positive, Times(b, pull, gamma));
  const Output far = LogSumExpOfRows(b, other, Times(b, push, gamma));
  return LogOfOneMoreThanExp(b, Add(b, near, far));
}

}  // namespace tfjob::model::losses
