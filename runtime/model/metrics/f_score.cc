// Implements the F-scores.
#include "runtime/graph/ops.h"
#include "runtime/model/losses/losses.h"
#include "runtime/model/metrics/metric_counts.h"

namespace tfjob::model::counts {
namespace {

using graph::Builder;
using graph::Output;

// Keras does not select a highest score whose absolute value is at most this number.
constexpr double kLeastScore = 1e-9;

// Returns 1 for each element that is predicted to be positive, and 0 for all others.
Output Positive(Builder& b, const Metric& metric, Output p) {
  if (metric.threshold)
    return Cast(b, Greater(b, p, losses::Number(b, p, *metric.threshold)), b.dtype(p));
  const Output highest = Cast(b, GreaterEqual(b, p, Max(b, p, {-1}, true)), b.dtype(p));
  const Output above = Greater(b, Abs(b, p), losses::Number(b, p, kLeastScore));
  return Mul(b, highest, Cast(b, above, b.dtype(p)));
}

// Returns the score of the class with this number.
double ScoreOf(const Metric& metric, std::span<const double> sums, size_t number) {
  const size_t classes = sums.size() / 4;
  const double right = sums[number], square = metric.beta * metric.beta;
  const double precision = right / (right + sums[classes + number] + losses::kEpsilon);
  const double recall = right / (right + sums[2 * classes + number] + losses::kEpsilon);
  return (1 + square) * precision * recall / (square * precision + recall + losses::kEpsilon);
}

}  // namespace

bool IsFScore(const Metric& metric) {
  return metric.kind == Metric::kF1Score || metric.kind == Metric::kFBetaScore;
}

Output FScoreSums(Builder& b, const Metric& metric, Output p, Output y, Output weights) {
  const Output positive = Positive(b, metric, p);
  const std::vector<int64_t> axes =
      metric.average == Metric::Average::kMicro ? std::vector<int64_t>{} : std::vector<int64_t>{0};
  std::vector<Output> sums;
  for (const Output values : {Mul(b, positive, y), Mul(b, positive, losses::OneMinus(b, y)),
                              Mul(b, losses::OneMinus(b, positive), y), y}) {
    const Output weighted = weights.valid() ? Mul(b, values, weights) : values;
    sums.push_back(Reshape(b, Sum(b, weighted, axes), {-1}));
  }
  return Concat(b, sums, 0);
}

double FScore(const Metric& metric, std::span<const double> sums) {
  const size_t classes = sums.size() / 4;
  double labels = 0, mean = 0, weighted = 0;
  for (size_t number = 0; number < classes; ++number) {
    const double score = ScoreOf(metric, sums, number), own = sums[3 * classes + number];
    mean += score / static_cast<double>(classes);
    weighted += score * own;
    labels += own;
  }
  const bool by_labels = metric.average == Metric::Average::kWeighted;
  return by_labels ? weighted / (labels + losses::kEpsilon) : mean;
}

}  // namespace tfjob::model::counts
