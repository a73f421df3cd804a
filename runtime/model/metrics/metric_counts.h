// Implements the metrics that are not means of losses: those that count elements, R2, and
// correlations. Private to this package.
#pragma once

#include "runtime/model/metrics/metric.h"

namespace tfjob::model::counts {

// Returns whether the metric compares the classes of labels with those of predictions.
bool IsIntersectionOverUnion(const Metric& metric);
// Returns whether the metric chooses a point of a curve.
bool IsPointOfCurve(const Metric& metric);
bool IsFScore(const Metric& metric);
// Returns whether the labels are classes: those of kIoU and kMeanIoU that are compared with the
// class that has the highest score.
bool ComparesClassNumbers(const Metric& metric);

// Returns the number of sums of a metric that counts elements. `elements` is the number of elements
// of the output for one example.
int64_t SumsOf(const Metric& metric, int64_t elements);

// Returns the sums for labels of the prediction's shape:
//   counts, kPrecision, kRecall   the number of elements of each kind that the metric needs
//   kAuc       true positives per threshold, false positives per threshold, positives, negatives
//   points of curves   per threshold: true positives, then false positives, then false negatives,
//              then true negatives. If there are no false negatives, the recall is exactly 1
//   F-scores   per class, or of all classes with kMicro: true positives, then false positives, then
//              false negatives, then labels
//   intersections over unions   per class: places of both, then places of the labels, then places
//              of the predictions. The labels of a metric that ComparesClassNumbers are classes
//   kR2Score   per element of the output: Σ y, then Σ y², then Σ (y - p)²
// If `sample_weights` is valid, every element has the weight of its place, and kR2Score has an
// additional sum: the sum of the weights.
graph::Output Sums(graph::Builder& b, const Metric& metric, graph::Output p, graph::Output y,
                   graph::Output sample_weights);

graph::Output FScoreSums(graph::Builder& b, const Metric& metric, graph::Output p, graph::Output y,
                         graph::Output weights);
graph::Output IntersectionSums(graph::Builder& b, const Metric& metric, graph::Output p,
                               graph::Output y, graph::Output sample_weights);

// Return the value of a metric, using Keras' formulas (keras/src/metrics).
double AreaUnderCurve(const Metric& metric, std::span<const double> sums);
double PointOfCurve(const Metric& metric, std::span<const double> sums);
double FScore(const Metric& metric, std::span<const double> sums);
double IntersectionOverUnion(const Metric& metric, std::span<const double> sums);

double Value(const Metric& metric, std::span<const double> sums, double examples);

// Return the correlation of p and y along the last axis, at each place.
graph::Output PearsonCorrelation(graph::Builder& b, graph::Output p, graph::Output y);
graph::Output ConcordanceCorrelation(graph::Builder& b, graph::Output p, graph::Output y);

}  // namespace tfjob::model::counts
