// Implements the intersections over unions.
#include <numeric>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/losses/losses.h"
#include "runtime/model/metrics/metric_counts.h"

namespace tfjob::model::counts {
namespace {

using graph::Builder;
using graph::Output;

int64_t ClassesOf(const Metric& metric) {
  return metric.kind == Metric::kBinaryIoU ? 2 : metric.num_classes;
}

bool ComparesRows(const Metric& metric) {
  return metric.kind == Metric::kOneHotIoU || metric.kind == Metric::kOneHotMeanIoU;
}

// Returns the classes, as int64: numbers are rounded towards 0.
Output Classes(Builder& b, Output x) {
  return Cast(b, x, DType::kInt64);
}

Output ClassesOfLabels(Builder& b, const Metric& metric, Output y) {
  const bool rows = ComparesRows(metric) || !metric.sparse_y_true;
  return rows ? ArgMax(b, y, -1) : Classes(b, y);
}

Output ClassesOfPredictions(Builder& b, const Metric& metric, Output p) {
  if (metric.kind == Metric::kBinaryIoU)
    return Classes(b, GreaterEqual(b, p, losses::Number(b, p, metric.threshold.value_or(0.5))));
  const bool rows = ComparesRows(metric) || !metric.sparse_y_pred;
  return rows ? ArgMax(b, p, -1) : Classes(b, p);
}

// Returns a row per place, with 1 in the column of the place's class. The row of a place whose
// number is not a class has only zeros.
Output OneHotRows(Builder& b, int64_t count, Output classes) {
  Tensor numbers(DType::kInt64, Shape({1, count}));
  std::iota(numbers.data<int64_t>().begin(), numbers.data<int64_t>().end(), 0);
  const Output column = Reshape(b, classes, {-1, 1});
  return Cast(b, Equal(b, column, Const(b, std::move(numbers))), DType::kFloat32);
}

// Returns the weight of each place as a column. As in Keras, whose counts are integers, the weights
// are rounded towards 0.
Output WeightColumn(Builder& b, Output sample_weights, Output places) {
  const Output whole = Cast(b, Cast(b, sample_weights, DType::kInt64), DType::kFloat32);
  const Output own = AlongSteps(b, whole, places);
  if (!b.ok()) return own;
  return Reshape(b, BroadcastTo(b, own, b.shape(places)), {-1, 1});
}

}  // namespace

bool IsIntersectionOverUnion(const Metric& metric) {
  return metric.kind >= Metric::kIoU && metric.kind <= Metric::kOneHotMeanIoU;
}

bool ComparesClassNumbers(const Metric& metric) {
  const bool sparse = metric.kind == Metric::kIoU || metric.kind == Metric::kMeanIoU;
  return sparse && metric.sparse_y_true && !metric.sparse_y_pred;
}

Output IntersectionSums(Builder& b, const Metric& metric, Output p, Output y,
                        Output sample_weights) {
  const Output labels = ClassesOfLabels(b, metric, y);
  const Output predictions = ClassesOfPredictions(b, metric, p);
  const Output truth = OneHotRows(b, ClassesOf(metric), labels);
  const Output found = OneHotRows(b, ClassesOf(metric), predictions);
  Output counted = Mul(b, Sum(b, truth, {-1}, true), Sum(b, found, {-1}, true));
  if (metric.ignore_class) {
    const Output others = NotEqual(b, labels, static_cast<double>(*metric.ignore_class));
    counted = Mul(b, counted, Reshape(b, Cast(b, others, DType::kFloat32), {-1, 1}));
  }
  if (sample_weights.valid() && b.ok())
    counted = Mul(b, counted, WeightColumn(b, sample_weights, predictions));
  std::vector<Output> sums;
  for (const Output rows : {Mul(b, truth, found), truth, found})
    sums.push_back(Sum(b, Mul(b, rows, counted), {0}));
  return Concat(b, sums, 0);
}

double IntersectionOverUnion(const Metric& metric, std::span<const double> sums) {
  const size_t classes = sums.size() / 3;
  std::vector<int64_t> targets = metric.target_class_ids;
  if (targets.empty()) {
    targets.resize(classes);
    std::iota(targets.begin(), targets.end(), 0);
  }
  double total = 0, count = 0;
  for (const int64_t target : targets) {
    const auto i = static_cast<size_t>(target);
    const double either = sums[classes + i] + sums[2 * classes + i] - sums[i];
    if (either <= 1e-9) continue;
    total += sums[i] / (either + losses::kEpsilon);
    ++count;
  }
  return total / (count + losses::kEpsilon);
}

}  // namespace tfjob::model::counts
