#include "runtime/model/metrics/metric_counts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::counts {
namespace {

using graph::Builder;
using graph::Output;
using losses::OneMinus;

// Keras' NEG_INF, which is below all scores.
constexpr double kNoThreshold = -1e10;

int64_t NumberOfThresholds(const Metric& metric) {
  const auto given = static_cast<int64_t>(metric.thresholds.size());
  return given > 0 ? given + 2 : metric.num_thresholds;
}

// Returns Keras' thresholds of a curve: those of the metric or, if it has none, evenly distributed
// ones from 0 to 1. For kAuc, the first and the last are slightly below 0 and above 1. A single
// threshold is 0.5.
Tensor Thresholds(const Metric& metric) {
  const int64_t count = NumberOfThresholds(metric);
  Tensor tensor(DType::kFloat32, Shape({1, count}));
  const auto values = tensor.data<float>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>(static_cast<double>(i) / std::max(1.0, static_cast<double>(count - 1)));
  for (size_t i = 0; i < metric.thresholds.size(); ++i)
    values[i + 1] = static_cast<float>(metric.thresholds[i]);
  if (metric.kind == Metric::kAuc) {
    values.front() = static_cast<float>(-losses::kEpsilon);
    values.back() = static_cast<float>(1 + losses::kEpsilon);
  }
  if (count == 1) values.front() = 0.5F;
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

// Replaces all elements except the k with the highest scores along the last axis. Among equal
// scores, keeps the first ones. The replacement is below all thresholds.
Output BestOf(Builder& b, int64_t k, Output x) {
  const Output lowest = losses::Number(b, x, kNoThreshold);
  Tensor numbers(DType::kInt64, Shape({b.shape(x).dim(-1)}));
  std::iota(numbers.data<int64_t>().begin(), numbers.data<int64_t>().end(), 0);
  const Output indices = Const(b, std::move(numbers));
  std::vector<int64_t> column = b.shape(x).dims();
  column.back() = 1;
  Output rest = x, best = BroadcastTo(b, lowest, b.shape(x));
  for (int64_t i = 0; i < k && b.ok(); ++i) {
    const Output chosen = Equal(b, Reshape(b, ArgMax(b, rest, -1), Shape(column)), indices);
    best = Select(b, chosen, x, best);
    rest = Select(b, chosen, losses::Number(b, x, -std::numeric_limits<double>::infinity()), rest);
  }
  return best;
}

// Returns the threshold of a metric that has only one.
double ThresholdOf(const Metric& metric) {
  if (!metric.thresholds.empty()) return metric.thresholds[0];
  return metric.top_k > 0 ? kNoThreshold : 0.5;
}

// Multiplies each value by the weight of its place. Returns the values unchanged if there are no
// weights.
Output Weighted(Builder& b, Output values, Output weights) {
  return weights.valid() ? Mul(b, values, weights) : values;
}

Output CurveSums(Builder& b, const Metric& metric, Output p, Output y, Output weights) {
  if (metric.from_logits.value_or(false)) p = Sigmoid(b, p);
  const Output column = Reshape(b, ClipByValue(b, p, 0, 1), {-1, 1});
  const Output above = Cast(b, Greater(b, column, Const(b, Thresholds(metric))),
                            DType::kFloat32);  // [n, thresholds]
  const Output yes = Reshape(b, Weighted(b, y, weights), {1, -1});
  const Output no = Reshape(b, Weighted(b, OneMinus(b, y), weights), {1, -1});
  if (IsPointOfCurve(metric)) {
    const Output below = OneMinus(b, above);
    std::vector<Output> sums;
    for (const Output side : {above, below})
      for (const Output labels : {yes, no}) sums.push_back(Vector(b, MatMul(b, labels, side)));
    return Concat(b, sums, 0);
  }
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

bool IsPointOfCurve(const Metric& metric) {
  return metric.kind >= Metric::kPrecisionAtRecall &&
         metric.kind <= Metric::kSpecificityAtSensitivity;
}

int64_t SumsOf(const Metric& metric, int64_t elements) {
  if (metric.kind == Metric::kAuc) return 2 * NumberOfThresholds(metric) + 2;
  if (IsPointOfCurve(metric)) return 4 * NumberOfThresholds(metric);
  if (IsFScore(metric)) return metric.average == Metric::Average::kMicro ? 4 : 4 * elements;
  if (IsIntersectionOverUnion(metric))
    return metric.kind == Metric::kBinaryIoU ? 3 * 2 : 3 * metric.num_classes;
  return metric.kind == Metric::kPrecision || metric.kind == Metric::kRecall ? 2 : 1;
}

Output Sums(Builder& b, const Metric& metric, Output p, Output y, Output sample_weights) {
  if (IsIntersectionOverUnion(metric)) return IntersectionSums(b, metric, p, y, sample_weights);
  if (metric.top_k > 0) p = BestOf(b, metric.top_k, p);
  if (metric.class_id >= 0 && b.ok()) {
    p = OfClass(b, metric.class_id, p);
    y = OfClass(b, metric.class_id, y);
  }
  if (!b.ok()) return {};
  const Output weights = sample_weights.valid() ? AlongSteps(b, sample_weights, p) : Output();
  if (metric.kind == Metric::kR2Score) return R2Sums(b, p, y, weights);
  if (IsFScore(metric)) return FScoreSums(b, metric, p, y, weights);
  // As in Keras, every label except 0 is positive.
  const Output yes = OneMinus(b, Cast(b, Equal(b, y, losses::Number(b, y, 0)), b.dtype(y)));
  if (metric.kind == Metric::kAuc || IsPointOfCurve(metric))
    return CurveSums(b, metric, p, yes, weights);
  const Output positive =
      Cast(b, Greater(b, p, losses::Number(b, p, ThresholdOf(metric))), b.dtype(p));
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
  if (IsPointOfCurve(metric)) return PointOfCurve(metric, sums);
  if (IsFScore(metric)) return FScore(metric, sums);
  if (IsIntersectionOverUnion(metric)) return IntersectionOverUnion(metric, sums);
  const bool ratio = metric.kind == Metric::kPrecision || metric.kind == Metric::kRecall;
  return ratio ? Quotient(sums[0], sums[0] + sums[1]) : sums[0];
}

}  // namespace tfjob::model::counts
