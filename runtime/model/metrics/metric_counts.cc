#include "runtime/model/metrics/metric_counts.h"

#include <cmath>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::counts {
namespace {

using graph::Builder;
using graph::Output;
using losses::OneMinus;

// Returns Keras' thresholds: they are evenly distributed, but the first and the last are moved
// slightly outwards.
Tensor Thresholds(int64_t count) {
  Tensor tensor(DType::kFloat32, Shape({1, count}));
  const auto values = tensor.data<float>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<double>(i) / static_cast<double>(count - 1));
  values.front() = static_cast<float>(-losses::kEpsilon);
  values.back() = static_cast<float>(1 + losses::kEpsilon);
  return tensor;
}

Output Vector(Builder& b, Output x) {
  return Reshape(b, x, {-1});
}

// Returns the elements of one class: x[..., class_id].
Output OfClass(Builder& b, int64_t class_id, Output x) {
  const Shape& shape = b.shape(x);
  if (!b.ok() || shape.rank() < 2) return x;
  std::vector<int64_t> begin(static_cast<size_t>(shape.rank()), 0), size = shape.dims();
  begin.back() = class_id;
  size.back() = 1;
  return Slice(b, x, std::move(begin), std::move(size));
}

// Multiplies each value by the weight of its place. Returns the values unchanged if there are no
// weights.
Output Weighted(Builder& b, Output values, Output weights) {
  return weights.valid() ? Mul(b, values, weights) : values;
}

Output AucSums(Builder& b, const Metric& metric, Output p, Output y, Output weights) {
  if (metric.from_logits.value_or(false)) p = Sigmoid(b, p);
  const Output column = Reshape(b, ClipByValue(b, p, 0, 1), {-1, 1});
  const Output above = Cast(b, Greater(b, column, Const(b, Thresholds(metric.num_thresholds))),
                            DType::kFloat32);  // [n, thresholds]
  const Output yes = Reshape(b, Weighted(b, y, weights), {1, -1});
  const Output no = Reshape(b, Weighted(b, OneMinus(b, y), weights), {1, -1});
  return Concat(b,
                {Vector(b, MatMul(b, yes, above)), Vector(b, MatMul(b, no, above)),
                 Vector(b, Sum(b, yes, {})), Vector(b, Sum(b, no, {}))},
                0);
}

Output R2Sums(Builder& b, Output p, Output y, Output weights) {
  std::vector<Output> sums;
  for (const Output values : {y, Square(b, y), Square(b, Sub(b, y, p))})
    sums.push_back(Sum(b, Weighted(b, values, weights), {0}));
  if (weights.valid()) sums.push_back(Vector(b, Sum(b, weights, {})));
  return Concat(b, sums, 0);
}

// Returns the sum of the weights of all elements at which both x and y are 1.
Output CountBoth(Builder& b, Output x, Output y, Output weights) {
  return Sum(b, Weighted(b, Mul(b, x, y), weights), {});
}

double Quotient(double a, double b) {
  return b == 0 ? 0 : a / b;
}

double R2(std::span<const double> sums, double examples) {
  const size_t elements = sums.size() / 3;
  if (sums.size() > 3 * elements) examples = sums.back();  // the sum of the weights
  double total = 0;
  for (size_t i = 0; i < elements; ++i) {
    const double sum = sums[i], variance = sums[elements + i] - sum * sum / examples;
    const double score = 1 - sums[2 * elements + i] / variance;
    total += std::isinf(score) ? 0 : score;
  }
  return total / static_cast<double>(elements);
}

}  // namespace

int64_t SumsOf(const Metric& metric) {
  if (metric.kind == Metric::kAuc) return 2 * metric.num_thresholds + 2;
  return metric.kind == Metric::kPrecision || metric.kind == Metric::kRecall ? 2 : 1;
}

Output Sums(Builder& b, const Metric& metric, Output p, Output y, Output sample_weights) {
  if (metric.class_id >= 0) {
    p = OfClass(b, metric.class_id, p);
    y = OfClass(b, metric.class_id, y);
  }
  if (!b.ok()) return {};
  const Output weights = sample_weights.valid() ? AlongSteps(b, sample_weights, p) : Output();
  if (metric.kind == Metric::kR2Score) return R2Sums(b, p, y, weights);
  // As in Keras, every label except 0 is positive.
  const Output yes = OneMinus(b, Cast(b, Equal(b, y, losses::Number(b, y, 0)), b.dtype(y)));
  if (metric.kind == Metric::kAuc) return AucSums(b, metric, p, yes, weights);
  const Output positive =
      Cast(b, Greater(b, p, losses::Number(b, p, metric.threshold)), b.dtype(p));
  const Output no = OneMinus(b, yes), negative = OneMinus(b, positive);
  const Output true_positives = CountBoth(b, yes, positive, weights);
  switch (metric.kind) {
    case Metric::kTruePositives:
      return true_positives;
    case Metric::kTrueNegatives:
      return CountBoth(b, no, negative, weights);
    case Metric::kFalsePositives:
      return CountBoth(b, no, positive, weights);
    case Metric::kFalseNegatives:
      return CountBoth(b, yes, negative, weights);
    default:
      break;
  }
  const Output wrong = metric.kind == Metric::kPrecision ? CountBoth(b, no, positive, weights)
                                                         : CountBoth(b, yes, negative, weights);
  return Concat(b, {Vector(b, true_positives), Vector(b, wrong)}, 0);
}

double Value(const Metric& metric, std::span<const double> sums, double examples) {
  if (metric.kind == Metric::kR2Score) return R2(sums, examples);
  if (metric.kind == Metric::kAuc) return AreaUnderCurve(metric, sums);
  const bool ratio = metric.kind == Metric::kPrecision || metric.kind == Metric::kRecall;
  return ratio ? Quotient(sums[0], sums[0] + sums[1]) : sums[0];
}

}  // namespace tfjob::model::counts
