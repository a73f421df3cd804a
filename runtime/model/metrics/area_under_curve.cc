// Implements AreaUnderCurve and PointOfCurve.
#include <algorithm>
#include <cmath>

#include "runtime/model/metrics/metric_counts.h"

namespace tfjob::model::counts {
namespace {

double NoNan(double a, double b) {
  return b == 0 ? 0 : a / b;
}

// Contains the counts of a metric. True and false positives are counted per threshold; the
// thresholds are in ascending order.
struct Confusion {
  std::span<const double> true_positives, false_positives;
  double positives, negatives;
};

// Returns the area under the precision-recall curve. Like Keras, interpolates the precision between
// two thresholds (Davis and Goadrich, "The Relationship Between Precision-Recall and ROC Curves",
// 2006).
double InterpolatedPrArea(const Confusion& c) {
  double area = 0;
  for (size_t i = 0; i + 1 < c.true_positives.size(); ++i) {
    const double tp = c.true_positives[i], next_tp = c.true_positives[i + 1];
    const double all = tp + c.false_positives[i], next = next_tp + c.false_positives[i + 1];
    const double slope = NoNan(tp - next_tp, std::max(all - next, 0.0));
    const double intercept = next_tp - slope * next;
    const double ratio = all > 0 && next > 0 ? all / next : 1;
    area += NoNan(slope * (tp - next_tp + intercept * std::log(ratio)), c.positives);
  }
  return area;
}

double Height(Metric::Summation method, double a, double b) {
  switch (method) {
    case Metric::Summation::kMinoring:
      return std::min(a, b);
    case Metric::Summation::kMajoring:
      return std::max(a, b);
    case Metric::Summation::kInterpolation:
      break;
  }
  return (a + b) / 2;
}

}  // namespace

double PointOfCurve(const Metric& metric, std::span<const double> sums) {
  const size_t n = sums.size() / 4;
  double best = 0;
  for (size_t i = 0; i < n; ++i) {
    const double tp = sums[i], fp = sums[n + i], fn = sums[2 * n + i], tn = sums[3 * n + i];
    const double recall = NoNan(tp, tp + fn);  // or sensitivity
    const bool of_precision =
        metric.kind == Metric::kPrecisionAtRecall || metric.kind == Metric::kRecallAtPrecision;
    const double other = of_precision ? NoNan(tp, tp + fp) : NoNan(tn, tn + fp);  // or specificity
    const bool recall_is_given = metric.kind == Metric::kPrecisionAtRecall ||
                                 metric.kind == Metric::kSpecificityAtSensitivity;
    if ((recall_is_given ? recall : other) >= *metric.target)
      best = std::max(best, recall_is_given ? other : recall);
  }
  return best;
}

double AreaUnderCurve(const Metric& metric, std::span<const double> sums) {
  const size_t n = (sums.size() - 2) / 2;
  const Confusion c{sums.subspan(0, n), sums.subspan(n, n), sums[2 * n], sums[2 * n + 1]};
  const bool pr = metric.curve == Metric::Curve::kPr;
  if (pr && metric.summation_method == Metric::Summation::kInterpolation)
    return InterpolatedPrArea(c);
  const auto recall = [&](size_t i) { return NoNan(c.true_positives[i], c.positives); };
  const auto x = [&](size_t i) {
    return pr ? recall(i) : NoNan(c.false_positives[i], c.negatives);
  };
  const auto y = [&](size_t i) {
    const double tp = c.true_positives[i];
    return pr ? NoNan(tp, tp + c.false_positives[i]) : recall(i);
  };
  double area = 0;
  for (size_t i = 0; i + 1 < n; ++i)
    area += (x(i) - x(i + 1)) * Height(metric.summation_method, y(i), y(i + 1));
  return area;
}

}  // namespace tfjob::model::counts
