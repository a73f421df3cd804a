// Implements the metrics that are not means: those that count elements, and R2. Private to this
// package.
#pragma once

#include "runtime/model/metrics/metric.h"

namespace tfjob::model::counts {

// Returns the number of sums of a metric that counts elements.
int64_t SumsOf(const Metric& metric);

// Returns the sums for labels of the prediction's shape:
//   counts, kPrecision, kRecall   the number of elements of each kind that the metric needs
//   kAuc       true positives per threshold, false positives per threshold, positives, negatives
//   kR2Score   per element of the output: Σ y, then Σ y², then Σ (y - p)²
// If `sample_weights` is valid, every element has the weight of its place, and kR2Score has an
// additional sum: the sum of the weights.
graph::Output Sums(graph::Builder& b, const Metric& metric, graph::Output p, graph::Output y,
                   graph::Output sample_weights);

// Returns the value of kAuc, using Keras' formulas (keras/src/metrics/confusion_metrics.py).
double AreaUnderCurve(const Metric& metric, std::span<const double> sums);

double Value(const Metric& metric, std::span<const double> sums, double examples);

}  // namespace tfjob::model::counts
