// Defines metrics, with their Keras names. A metric consists of sums, and of a function that
// computes the metric's value from their totals. A graph computes the sums of each batch; the
// totals are the sums over all batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/model/losses/loss.h"

namespace tfjob::model {

// Describes a metric, which may also be the mean of a loss. The accuracies and the losses are means
// over all places (loss.h); kPerplexity and kRootMeanSquaredError are functions of such means.
// kAccuracy means kBinaryAccuracy if the output has one element; otherwise, it means
// kSparseCategoricalAccuracy or kCategoricalAccuracy, depending on the form of the labels. The
// top-k metrics are 1 at places where fewer than `k` scores exceed the score of the label's class,
// and 0 at all other places. As a metric, the cosine similarity is the negative of the loss with
// this name.
//
// The metrics from kPrecision to kFalseNegatives treat all elements of the output as probabilities.
// An element is positive if it is above `threshold`. kAuc is the area under a curve, computed from
// points of the curve at `num_thresholds` evenly distributed thresholds.
struct Metric {
  enum class Kind {
    kAccuracy,
    kBinaryAccuracy,
    kCategoricalAccuracy,
    kSparseCategoricalAccuracy,
    kTopKCategoricalAccuracy,
    kSparseTopKCategoricalAccuracy,
    kPerplexity,  // exp of the mean cross-entropy; the labels determine the kind
    kRootMeanSquaredError,
    kR2Score,  // mean of 1 - residual / variance over the elements of the output
    kPrecision,
    kRecall,
    kAuc,
    kTruePositives,
    kTrueNegatives,
    kFalsePositives,
    kFalseNegatives,
    kLoss,  // the mean of `loss`
  };
  using enum Kind;

  Metric(Kind kind) : kind(kind) {}                   // NOLINT: most metrics are only a kind
  Metric(LossKind loss) : kind(kLoss), loss(loss) {}  // NOLINT

  enum class Curve { kRoc, kPr };
  // Specifies how the area between two thresholds is computed: using Keras' interpolation, or from
  // the lower or the higher of the values at the two thresholds.
  enum class Summation { kInterpolation, kMinoring, kMajoring };

  Kind kind;
  LossKind loss = {};

  // Arguments, with Keras' names and defaults. A kind has only the arguments that ReadMetric
  // accepts for it.
  double threshold = 0.5;
  int64_t k = 5;
  int64_t class_id =
      -1;  // -1: all elements of the output; otherwise only this index on the last axis
  int64_t num_thresholds = 200;
  Curve curve = Curve::kRoc;
  Summation summation_method = Summation::kInterpolation;
  std::optional<bool> from_logits = {};  // if unset, inherited from the loss (kAuc: false)
  double label_smoothing = 0;

  std::string given_name = {};  // the name that the user has given; "": the metric's own name

  bool operator==(const Metric&) const = default;
};

// Parses a name such as "accuracy". For an unknown name, returns InvalidArgument with a message
// that suggests or lists names.
StatusOr<Metric> ParseMetric(std::string_view name);
// Reads a name, or a map with a name and arguments: {name: top_k_categorical_accuracy, k: 3}. The
// argument `as` sets Metric::given_name. For anything else, returns InvalidArgument with a message
// that contains the path, the metric and the argument.
StatusOr<Metric> ReadMetric(const JsonField& field);
// Returns the name of the metric's kind, such as "auc".
std::string_view Name(const Metric& metric);
// Returns the names of all metrics.
std::vector<std::string_view> MetricNames();

// Like CheckLoss, returns InvalidArgument if the metric is incompatible with the output or the
// labels.
Status CheckMetric(const Metric& metric, const Shape& output, DType label_dtype,
                   const Shape& label_shape);

// Returns the number of sums. `elements` is the number of elements of the output for one example.
// `masked` is whether the output has a mask, and `weighted` is whether sample weights are passed to
// MetricSums.
int64_t SumsOf(const Metric& metric, int64_t elements, bool masked = false, bool weighted = false);

// Returns the sums for the batch: a float32 scalar if there is only one sum, and otherwise a
// vector. CheckMetric must have accepted the shapes. A cross-entropy metric that does not set
// from_logits inherits it from the output's loss.
//
// As in Keras, if the output has a mask, a metric that is a mean covers only the unmasked places.
// Such a metric has two sums: the sum of the values and the sum of the mask. As in Keras,
// kRootMeanSquaredError, kR2Score, and the metrics from kPrecision to kFalseNegatives ignore the
// mask.
//
// `sample_weights`, if valid, contains one float32 per example or one per place. As in Keras'
// weighted_metrics, a mean is then weighted. Its second sum is the sum of the weights, multiplied
// by the mask if there is one. In all other metrics, every element that is counted or added up has
// the weight of its place.
graph::Output MetricSums(graph::Builder& b, const Metric& metric, const Loss& loss,
                         graph::Output prediction, graph::Output labels, graph::Output mask = {},
                         graph::Output sample_weights = {});

// Returns the value of the metric. `sums` contains the totals of the SumsOf(metric) sums over
// `examples` examples. Returns 0 if there are no examples. Like Keras, also returns 0 in some cases
// of a division by zero.
double MetricValue(const Metric& metric, std::span<const double> sums, int64_t examples);

}  // namespace tfjob::model
